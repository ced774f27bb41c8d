package seccomp

import (
	"golang.org/x/sys/unix"

	"jail/plan"
)

// sockets decides which socket(2) calls there are:
//
//	AF_UNIX     refused unless Landlock ABI 9 or a rule makes it safe; socketpair stays
//	AF_INET[6]  stream with TCP, datagram with UDP; MPTCP and UDP only while ports are free
//	AF_NETLINK  the route protocol, if a rule asks for it
//	others      EAFNOSUPPORT, as on a kernel without them
//
// A filter sees the arguments of socket(2), so what it lets through has the
// right type for ever.
func sockets(n plan.Network, abi int) []Rule {
	var rules []Rule
	for f := uint64(0); f < 64; f++ {
		switch f {
		case unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK:
		default:
			rules = append(rules, Rule{"socket", unix.EAFNOSUPPORT, []Arg{low(0, f)}})
		}
	}
	rules = append(rules, otherBits("socket", 0, 63, unix.EAFNOSUPPORT)...)
	if !n.UnixAny && abi < abiUnix {
		rules = append(rules, Rule{"socket", unix.EACCES, []Arg{low(0, unix.AF_UNIX)}})
	}
	rules = append(rules, netlink(n.Interfaces)...)
	for _, family := range []uint64{unix.AF_INET, unix.AF_INET6} {
		rules = append(rules, inet(family, n)...)
	}
	if n.Restricted() {
		rules = append(rules, fastOpen()...)
	}
	return rules
}

// abiUnix is the Landlock ABI from which unix sockets with a path are covered.
const abiUnix = 9

const sockTypeMask = 0xf // the rest is SOCK_CLOEXEC and SOCK_NONBLOCK

func netlink(route bool) []Rule {
	family := low(0, unix.AF_NETLINK)
	if !route {
		return []Rule{{"socket", unix.EAFNOSUPPORT, []Arg{family}}}
	}
	var rules []Rule
	for b := uint64(1); b < 1<<32; b <<= 1 { // NETLINK_ROUTE is 0
		rules = append(rules, Rule{"socket", unix.EPROTONOSUPPORT, []Arg{family, bits(2, b)}})
	}
	return rules
}

// inet lets through, of one family, exactly (stream, 0 or TCP or MPTCP) and
// (datagram, 0 or UDP). Protocols are excluded by the bits that the allowed
// ones do not have, and what is left over by name.
func inet(family uint64, n plan.Network) []Rule {
	fam := low(0, family)
	var rules []Rule
	for t := uint64(0); t <= sockTypeMask; t++ {
		if t != unix.SOCK_STREAM && t != unix.SOCK_DGRAM {
			rules = append(rules, Rule{"socket", unix.EPERM, []Arg{fam, {1, sockTypeMask, t}}})
		}
	}
	stream := Arg{1, sockTypeMask, unix.SOCK_STREAM}
	allowed := uint64(unix.IPPROTO_TCP)
	left := []uint64{2, 4}
	if !n.Restricted() {
		allowed |= unix.IPPROTO_MPTCP
		left = append(left, 256, 258, 260)
	}
	rules = append(rules, protocols(fam, stream, allowed, left)...)

	datagram := Arg{1, sockTypeMask, unix.SOCK_DGRAM}
	if n.Restricted() && !n.UDP {
		return append(rules, Rule{"socket", unix.EACCES, []Arg{fam, datagram}})
	}
	return append(rules, protocols(fam, datagram, unix.IPPROTO_UDP, []uint64{1, 16})...)
}

func protocols(family, kind Arg, allowedBits uint64, left []uint64) []Rule {
	var rules []Rule
	for b := uint64(1); b < 1<<32; b <<= 1 {
		if allowedBits&b == 0 {
			rules = append(rules, Rule{"socket", unix.EPROTONOSUPPORT, []Arg{family, kind, bits(2, b)}})
		}
	}
	for _, p := range left {
		rules = append(rules, Rule{"socket", unix.EPROTONOSUPPORT, []Arg{family, kind, low(2, p)}})
	}
	return rules
}

// fastOpen refuses to connect by sending: Landlock checks connect(2) only.
func fastOpen() []Rule {
	var rules []Rule
	for call, arg := range map[string]uint{"sendto": 3, "sendmsg": 2, "sendmmsg": 3} {
		rules = append(rules, Rule{call, unix.EPERM, []Arg{bits(arg, unix.MSG_FASTOPEN)}})
	}
	return rules
}
