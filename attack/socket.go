package attack

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// familyAttacks open sockets that no agent needs.
func familyAttacks() []Attack {
	var all []Attack
	for _, s := range []struct {
		name                   string
		family, kind, protocol int
		want                   Errno
		root                   bool // an ordinary user would get EPERM
	}{
		{"netlink-route", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, unix.EAFNOSUPPORT, false},
		{"netlink-uevent", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT, unix.EAFNOSUPPORT, false},
		{"netlink-audit", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT, unix.EAFNOSUPPORT, false},
		{"netlink-netfilter", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER, unix.EAFNOSUPPORT, false},
		{"packet", unix.AF_PACKET, unix.SOCK_RAW, 0, unix.EAFNOSUPPORT, true},
		{"vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0, unix.EAFNOSUPPORT, false},
		{"alg", unix.AF_ALG, unix.SOCK_SEQPACKET, 0, unix.EAFNOSUPPORT, false},
		{"bluetooth", unix.AF_BLUETOOTH, unix.SOCK_RAW, 1, unix.EAFNOSUPPORT, false},
		{"xdp", unix.AF_XDP, unix.SOCK_RAW, 0, unix.EAFNOSUPPORT, true},
		{"key", unix.AF_KEY, unix.SOCK_RAW, 2, unix.EAFNOSUPPORT, true},
		{"rds", unix.AF_RDS, unix.SOCK_SEQPACKET, 0, unix.EAFNOSUPPORT, false},
		{"tipc", unix.AF_TIPC, unix.SOCK_STREAM, 0, unix.EAFNOSUPPORT, false},
		{"family-high-bits", unix.AF_NETLINK | 1<<32, unix.SOCK_RAW, 0, unix.EAFNOSUPPORT, false},
		{"raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, unix.EPERM, true},
		{"raw6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6, unix.EPERM, true},
		{"raw-nonblocking", unix.AF_INET, unix.SOCK_RAW | unix.SOCK_NONBLOCK, unix.IPPROTO_RAW, unix.EPERM, true},
		{"sctp", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, unix.EPROTONOSUPPORT, false},
		{"sctp-packets", unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP, unix.EPERM, false},
		{"dccp", unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP, unix.EPERM, false},
		{"smc", unix.AF_INET, unix.SOCK_STREAM, 256, unix.EPROTONOSUPPORT, false},
		{"udplite", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, unix.EPROTONOSUPPORT, false},
	} {
		a := surface("socket/"+s.name, s.want, func(World) error {
			return call(unix.SYS_SOCKET, uintptr(s.family), uintptr(s.kind), uintptr(s.protocol))
		})
		a.Want = append(a.Want, unix.EACCES) // where ports are restricted
		a.Root = s.root
		a.Absent = []Errno{unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT}
		all = append(all, a)
	}
	ping := surface("socket/ping", unix.EPROTONOSUPPORT, func(World) error {
		return call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)
	})
	ping.Want = append(ping.Want, unix.EACCES) // where ports are restricted
	ping.Absent = []Errno{unix.EACCES}         // net.ipv4.ping_group_range says who may
	return append(all, ping)
}

// unixAttacks speak to services outside, as one would to a docker daemon.
func unixAttacks() []Attack {
	refused := []Errno{unix.EACCES}
	return []Attack{
		{Name: "unix/stream", Promise: "sockets", Want: refused, run: func(w World) error {
			return dialUnix(unix.SOCK_STREAM, &unix.SockaddrUnix{Name: w.Stream})
		}},
		{Name: "unix/datagram", Promise: "sockets", Want: refused, run: func(w World) error {
			return dialUnix(unix.SOCK_DGRAM, &unix.SockaddrUnix{Name: w.Datagram})
		}},
		{Name: "unix/nonblocking", Promise: "sockets", Want: refused, run: func(w World) error {
			return dialUnix(unix.SOCK_STREAM|unix.SOCK_NONBLOCK, &unix.SockaddrUnix{Name: w.Stream})
		}},
		{Name: "unix/through-link", Promise: "sockets", Want: refused, run: func(w World) error {
			if err := unix.Symlink(w.Stream, w.in("s")); err != nil {
				return fmt.Errorf("no link: %v", err)
			}
			return dialUnix(unix.SOCK_STREAM, &unix.SockaddrUnix{Name: "s"})
		}},
		{Name: "unix/pair-reconnected", Promise: "sockets", Want: refused, run: func(w World) error {
			return reconnectPair(unix.SOCK_DGRAM, &unix.SockaddrUnix{Name: w.Datagram})
		}},
		{Name: "unix/pair-sends", Promise: "sockets", Want: refused, run: func(w World) error {
			return sendFromPair(unix.SOCK_DGRAM, &unix.SockaddrUnix{Name: w.Datagram})
		}},
		// The kernel takes "raw" for another word for datagrams (unix_create).
		{Name: "unix/raw-pair-sends", Promise: "sockets", Want: refused, run: func(w World) error {
			return sendFromPair(unix.SOCK_RAW, &unix.SockaddrUnix{Name: w.Datagram})
		}},
		{Name: "unix/abstract-from-pair", Promise: "abstract", Want: []Errno{unix.EACCES, unix.EPERM}, run: func(w World) error {
			return sendFromPair(unix.SOCK_DGRAM, &unix.SockaddrUnix{Name: w.Abstract + "-datagram"})
		}},
		{Name: "unix/bind-outside", Promise: "paths", Want: refused, Mounts: []Errno{unix.EROFS, unix.ENOENT}, run: func(w World) error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			return after(err, func() error { return unix.Bind(fd, &unix.SockaddrUnix{Name: "../outside/mark"}) })
		}},
		{Name: "unix/abstract", Promise: "abstract", Want: refused, run: func(w World) error {
			return dialUnix(unix.SOCK_STREAM, &unix.SockaddrUnix{Name: w.Abstract})
		}},
	}
}

func dialUnix(kind int, to unix.Sockaddr) error {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	return after(err, func() error { return unix.Connect(fd, to) })
}

// reconnectPair starts from the unix sockets that a jail has to give, which are
// connected in pairs. One for datagrams may be connected anew.
func reconnectPair(kind int, to unix.Sockaddr) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	return after(err, func() error { return unix.Connect(pair[0], to) })
}

// sendFromPair names another receiver with each datagram.
func sendFromPair(kind int, to unix.Sockaddr) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	return after(err, func() error { return unix.Sendto(pair[0], []byte("x"), 0, to) })
}

// NoPorts are rules without a port.
const NoPorts = "[network]\nconnect = []\nbind = []\n"

// portAttacks reach for the network where no port is granted.
func portAttacks() []Attack {
	ports := func(name string, want Errno, run func(World) error) Attack {
		return Attack{Name: "port/" + name, Promise: "ports", Want: []Errno{want}, Rules: NoPorts, run: run}
	}
	socket := func(kind, protocol int) func(World) error {
		return func(World) error { return call(unix.SYS_SOCKET, unix.AF_INET, uintptr(kind), uintptr(protocol)) }
	}
	other := ports("connect-other-port", unix.EACCES, func(w World) error { return dialTCP(w.TCP) })
	other.Rules = "[network]\nconnect = [1]\n"
	onlyBind := ports("connect-where-bind-is-free", unix.EACCES, func(w World) error { return dialTCP(w.TCP) })
	onlyBind.Rules = "[network]\nconnect = []\n"
	unbound := ports("listen-unbound", unix.EACCES, listenUnbound)
	unbound.Servers = true
	return []Attack{
		ports("connect", unix.EACCES, func(w World) error { return dialTCP(w.TCP) }),
		ports("connect6", unix.EACCES, dialTCP6),
		other, onlyBind,
		ports("connect-nonblocking", unix.EACCES, func(w World) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			return after(err, func() error { return pending(unix.Connect(fd, loopback(w.TCP))) })
		}),
		ports("fast-open", unix.EPERM, func(w World) error { return fastOpen(w, unix.MSG_FASTOPEN) }),
		ports("fast-open-and-more", unix.EPERM, func(w World) error { return fastOpen(w, unix.MSG_FASTOPEN|unix.MSG_NOSIGNAL) }),
		ports("fast-open-connect", unix.EACCES, func(w World) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1)
			return unix.Connect(fd, loopback(w.TCP))
		}),
		ports("bind", unix.EACCES, bindTCP),
		unbound,
		ports("udp", unix.EACCES, sendUDP),
		ports("udp6", unix.EACCES, func(World) error { return call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM, 0) }),
		unlessAbsent(ports("mptcp", unix.EPROTONOSUPPORT, socket(unix.SOCK_STREAM, unix.IPPROTO_MPTCP)), unix.EPROTONOSUPPORT),
		unlessAbsent(ports("mptcp-nonblocking", unix.EPROTONOSUPPORT, socket(unix.SOCK_STREAM|unix.SOCK_NONBLOCK, unix.IPPROTO_MPTCP)), unix.EPROTONOSUPPORT),
	}
}

func loopback(port int) unix.Sockaddr {
	return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
}

func dialTCP(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return after(err, func() error { return unix.Connect(fd, loopback(port)) })
}

// dialTCP6 takes the address that contains the old one.
func dialTCP6(w World) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	to := &unix.SockaddrInet6{Port: w.TCP}
	copy(to.Addr[:], net.IPv4(127, 0, 0, 1).To16())
	return unix.Connect(fd, to)
}

// pending takes a connection that is being made for one.
func pending(err error) error {
	if errors.Is(err, unix.EINPROGRESS) {
		return nil
	}
	return err
}

// fastOpen connects by sending.
func fastOpen(w World, flags int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return after(err, func() error { return unix.Sendto(fd, []byte("x"), flags, loopback(w.TCP)) })
}

func bindTCP(World) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return after(err, func() error { return unix.Bind(fd, loopback(0)) })
}

// listenUnbound is given a port by listen(2) itself, and serves it to all of
// the network. Success is a connection that came in.
func listenUnbound(World) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Listen(fd, 1); err != nil {
		return err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	return after(nil, func() error { return reachable(name.(*unix.SockaddrInet4).Port) })
}

// reachable tells whether somebody listens on a port of loopback. Where no
// connection may be made, being given a port is proof enough.
func reachable(port int) error {
	if port == 0 {
		return unix.EADDRNOTAVAIL
	}
	c, err := net.DialTimeout("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
	if errors.Is(err, unix.EACCES) {
		return nil
	}
	if err == nil {
		c.Close()
	}
	return err
}

func sendUDP(w World) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	return after(err, func() error { return unix.Sendto(fd, []byte("x"), 0, loopback(w.UDP)) })
}
