package seccomp

import (
	"golang.org/x/sys/unix"

	"jail/plan"
)

// sockets decides which socket(2) calls there are:
//
//	AF_UNIX     with Landlock ABI 9, or by a rule, as it is; with a supervisor, which
//	            connects on behalf, without datagrams; else refused
//	AF_INET[6]  stream with TCP, datagram with UDP; MPTCP and UDP only while ports are free
//	AF_NETLINK  the route protocol, if a rule asks for it
//	others      EAFNOSUPPORT, as on a kernel without them
//
// A filter sees the arguments of socket(2), so what it lets through has the
// right type for ever. Of socketpair(2) see pairs.
func sockets(p plan.Plan) []Rule {
	var rules []Rule
	n := p.Network
	add := func(e unix.Errno, args ...Arg) { rules = append(rules, refuse("socket", e, args...)) }

	families := []uint64{unix.AF_INET, unix.AF_INET6}
	if n.Interfaces {
		families = append(families, unix.AF_NETLINK)
		for _, protocol := range except(2, 6, unix.NETLINK_ROUTE) {
			add(unix.EPROTONOSUPPORT, low(0, unix.AF_NETLINK), protocol)
		}
	}
	switch {
	case p.RefusesUnix():
		add(unix.EACCES, low(0, unix.AF_UNIX))
	case p.ConnectsOnBehalf():
		for _, kind := range streams() {
			add(unix.EACCES, low(0, unix.AF_UNIX), kind)
		}
	}
	for _, family := range except(0, familyBits, append(families, unix.AF_UNIX)...) {
		add(unix.EAFNOSUPPORT, family)
	}
	for _, r := range inet(n) {
		add(r.Errno, append([]Arg{inetFamily()}, r.Args...)...)
	}
	rules = append(rules, pairs(p)...)
	if n.Restricted() {
		rules = append(rules, fastOpen()...)
	}
	if n.NoServers() {
		rules = append(rules, refuse("listen", unix.EACCES))
	}
	return rules
}

// pairs keeps socketpair(2) for streams: half of a pair is connected for good,
// connect(2) answers EISCONN and an address given to sendto(2) is ignored. A
// datagram socket (SOCK_RAW is another word for it) sends to any address all
// the same, so it is refused where socket(AF_UNIX) is.
func pairs(p plan.Plan) []Rule {
	var rules []Rule
	for _, family := range except(0, familyBits, unix.AF_UNIX) {
		rules = append(rules, refuse("socketpair", unix.EAFNOSUPPORT, family))
	}
	if !p.RefusesUnix() && !p.ConnectsOnBehalf() {
		return rules
	}
	for _, kind := range streams() {
		rules = append(rules, refuse("socketpair", unix.EACCES, kind))
	}
	return rules
}

// streams refuses all types of AF_UNIX sockets but those that connect(2) ties to
// one peer.
func streams() []Arg { return except(1, typeBits, unix.SOCK_STREAM, unix.SOCK_SEQPACKET) }

// What these bits can't tell apart, the kernel refuses itself: families from
// AF_MAX (46) on, and internet protocols from IPPROTO_MAX (263) on.
const (
	familyBits   = 6
	protocolBits = 9
	typeBits     = 4 // the rest of the type is SOCK_CLOEXEC and SOCK_NONBLOCK
)

// inetFamily matches AF_INET (2) and AF_INET6 (10): they differ in bit 3.
func inetFamily() Arg { return Arg{0, 1<<familyBits - 1 - 8, unix.AF_INET} }

// inet refuses, of the internet families, all but (stream, 0 or TCP or MPTCP)
// and (datagram, 0 or UDP); the call and the family are left to the caller.
func inet(n plan.Network) []Rule {
	var rules []Rule
	for _, kind := range except(1, typeBits, unix.SOCK_STREAM, unix.SOCK_DGRAM) {
		rules = append(rules, refuse("", unix.EPERM, kind))
	}
	streams := []uint64{0, unix.IPPROTO_TCP}
	if !n.Restricted() {
		streams = append(streams, unix.IPPROTO_MPTCP)
	}
	stream := Arg{1, 1<<typeBits - 1, unix.SOCK_STREAM}
	for _, protocol := range except(2, protocolBits, streams...) {
		rules = append(rules, refuse("", unix.EPROTONOSUPPORT, stream, protocol))
	}
	datagram := Arg{1, 1<<typeBits - 1, unix.SOCK_DGRAM}
	if n.Restricted() && !n.UDP {
		return append(rules, refuse("", unix.EACCES, datagram))
	}
	for _, protocol := range except(2, protocolBits, 0, unix.IPPROTO_UDP) {
		rules = append(rules, refuse("", unix.EPROTONOSUPPORT, datagram, protocol))
	}
	return rules
}

// fastOpen refuses to connect by sending: Landlock checks connect(2) only.
func fastOpen() []Rule {
	return []Rule{
		refuse("sendto", unix.EPERM, bits(3, unix.MSG_FASTOPEN)),
		refuse("sendmsg", unix.EPERM, bits(2, unix.MSG_FASTOPEN)),
		refuse("sendmmsg", unix.EPERM, bits(3, unix.MSG_FASTOPEN)),
	}
}
