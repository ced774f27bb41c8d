package seccomp

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// reference says what becomes of socket(2), in the words of the documentation:
// "allow" where the kernel decides, else the errnos that may answer.
func reference(n plan.Network, abi int, family, kind, protocol uint64) []string {
	switch family {
	case unix.AF_UNIX:
		if n.UnixAny || abi >= 9 {
			return []string{"allow"}
		}
		return []string{"EACCES"}
	case unix.AF_NETLINK:
		switch {
		case !n.Interfaces:
			return []string{"EAFNOSUPPORT"}
		case protocol != unix.NETLINK_ROUTE:
			return []string{"EPROTONOSUPPORT"}
		}
		return []string{"allow"}
	case unix.AF_INET, unix.AF_INET6:
		return internet(n, kind, protocol)
	}
	return []string{"EAFNOSUPPORT"}
}

func internet(n plan.Network, kind, protocol uint64) []string {
	restricted := n.Connect.Set || n.Bind.Set
	switch kind {
	case unix.SOCK_STREAM:
		if protocol == 0 || protocol == unix.IPPROTO_TCP || protocol == unix.IPPROTO_MPTCP && !restricted {
			return []string{"allow"}
		}
		return []string{"EPROTONOSUPPORT"}
	case unix.SOCK_DGRAM:
		if restricted && !n.UDP {
			return []string{"EACCES"}
		}
		if protocol == 0 || protocol == unix.IPPROTO_UDP {
			return []string{"allow"}
		}
		return []string{"EPROTONOSUPPORT"}
	}
	return []string{"EPERM"}
}

// Every family and type that a kernel has, with every internet protocol.
func TestSocket(t *testing.T) {
	for _, n := range networks() {
		p, network := assemble(t, n.text, n.abi), planOf(t, n.text, n.abi).Network
		for family := range uint64(64) {
			for kind := range uint64(16) {
				for protocol := uint64(0); protocol < protocols(family); protocol += step(family) {
					// The bits that the kernel takes away or does not look at.
					for _, c := range []call{
						on(t, "socket", family, kind, protocol),
						on(t, "socket", family|0xabcd<<32, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK|1<<63, protocol|0xffff<<32),
					} {
						want := reference(network, n.abi, family, kind, protocol)
						if got := p.action(t, c); !slices.Contains(want, got) {
							t.Fatalf("%q, ABI %d: socket(%d, %d, %d) %#x: want %v, got %s", n.text, n.abi, family, kind, protocol, c.args[:3], want, got)
						}
					}
				}
			}
		}
	}
}

// step is small where protocols matter.
func step(family uint64) uint64 {
	switch family {
	case unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK:
		return 1
	}
	return 37
}

// protocols is how many the filter tells apart; the kernel refuses the rest
// (see TestKernelRefusesTheRest).
func protocols(family uint64) uint64 {
	if family == unix.AF_NETLINK {
		return 64
	}
	return 512
}

// netlink has MAX_LINKS (32) protocols; the filter looks at 6 bits of the
// number, so nothing below 64 may be taken for the route protocol.
func TestNetlinkProtocols(t *testing.T) {
	p := assemble(t, "network.interfaces = true", 7)
	for protocol := range uint64(64) {
		want := "EPROTONOSUPPORT"
		if protocol == unix.NETLINK_ROUTE {
			want = "allow"
		}
		if got := p.action(t, on(t, "socket", unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)); got != want {
			t.Errorf("protocol %d: %s", protocol, got)
		}
	}
}

// Numbers that the filter can't tell from allowed ones must be refused by the
// kernel itself, or the filter has to know better.
func TestKernelRefusesTheRest(t *testing.T) {
	for _, tt := range []struct{ family, kind, protocol int }{
		{64 + unix.AF_UNIX, unix.SOCK_STREAM, 0},
		{64 + unix.AF_INET, unix.SOCK_STREAM, 0},
		{1 << 30, unix.SOCK_STREAM, 0},
		{-1, unix.SOCK_STREAM, 0},
		{unix.AF_INET, unix.SOCK_STREAM, 512},
		{unix.AF_INET, unix.SOCK_STREAM, 512 + unix.IPPROTO_TCP},
		{unix.AF_INET, unix.SOCK_DGRAM, 1024 + unix.IPPROTO_UDP},
		{unix.AF_INET, unix.SOCK_STREAM | 1<<4, 0},
		{unix.AF_INET, unix.SOCK_STREAM | 1<<20, 0},
		{unix.AF_NETLINK, unix.SOCK_RAW, 64},
	} {
		if fd, err := unix.Socket(tt.family, tt.kind, tt.protocol); err == nil {
			unix.Close(fd)
			t.Errorf("the kernel makes %+v, which the filter takes for something else", tt)
		}
	}
}

// socketpair(2) makes sockets too. A datagram socket of a pair can be aimed
// anywhere afterwards (sendto with an address, connect again), so while AF_UNIX is refused
// only connection-oriented pairs may be had; and no family but AF_UNIX.
func TestSocketpair(t *testing.T) {
	for _, n := range networks() {
		p, network := assemble(t, n.text, n.abi), planOf(t, n.text, n.abi).Network
		var families []uint64
		for family := range uint64(64) {
			if p.action(t, on(t, "socketpair", family, unix.SOCK_STREAM)) == "allow" {
				families = append(families, family)
			}
		}
		if !slices.Equal(families, []uint64{unix.AF_UNIX}) {
			t.Errorf("%q, ABI %d: %d families have socketpair, want AF_UNIX alone", n.text, n.abi, len(families))
		}
		if network.UnixAny || n.abi >= 9 {
			continue
		}
		for _, kind := range []uint64{unix.SOCK_DGRAM, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC, unix.SOCK_RAW} { // SOCK_RAW becomes SOCK_DGRAM
			if got := p.action(t, on(t, "socketpair", unix.AF_UNIX, kind)); got == "allow" {
				t.Errorf("%q, ABI %d: socketpair(AF_UNIX, %d) is allowed: it reaches datagram sockets outside", n.text, n.abi, kind)
			}
		}
	}
}

// The attack itself, without a filter: a datagram socket of a pair sends to the
// path of another socket.
func TestSocketpairReachesOthers(t *testing.T) {
	path := t.TempDir() + "/s"
	server, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(server)
	if err := unix.Bind(server, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_RAW} {
		pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		sent := unix.Sendto(pair[0], []byte("hello"), 0, &unix.SockaddrUnix{Name: path})
		n, err := unix.Read(server, make([]byte, 16))
		if sent != nil || err != nil || n != 5 {
			t.Errorf("kind %d: the control failed: %v %v; TestSocketpair may then be relaxed", kind, sent, err)
		}
		unix.Close(pair[0])
		unix.Close(pair[1])
	}
}
