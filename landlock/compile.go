package landlock

import (
	"slices"
	"strings"

	llconf "github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"jail/digest"
	"jail/plan"
)

// NewestABI is the newest version whose rights are known here. On a newer
// kernel these are used: what a later ABI adds needs to be understood first.
const NewestABI = 11

// Ruleset is what the kernel is told, as data.
type Ruleset struct {
	Handled llconf.Config
	Paths   []PathRule
	Connect []uint16 // TCP ports, if Handled has them
	Bind    []uint16
}

// PathRule gives Rights on an inode and, if it is a directory, on all beneath.
type PathRule struct {
	Path   string
	ID     plan.ID
	Made   bool // jail has mounted it itself: whatever is there is right
	Rights llconf.AccessFSSet
	Pin    *digest.State // the file must be in this very state
	Split  *Split
}

// Split gives rights on what is in a directory, entry by entry. The directory
// itself gets the right to list it.
type Split struct {
	Entries plan.Names
	Changed int64              // when the directory changed last: it must be as the plan has seen it
	File    llconf.AccessFSSet // for entries that are no directories
	Dir     llconf.AccessFSSet
}

const (
	readFile  = ll.AccessFSReadFile
	readRight = ll.AccessFSReadFile | ll.AccessFSReadDir
	// Device nodes are never made: MakeChar and MakeBlock are handled and
	// granted nowhere.
	writeFile  = ll.AccessFSWriteFile | ll.AccessFSTruncate
	writeRight = writeFile | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir |
		ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer
	// fileRights are those that a rule on a file may have.
	fileRights = readFile | writeFile | ll.AccessFSExecute | ll.AccessFSIoctlDev | ll.AccessFSResolveUnix
)

// Compile makes the ruleset of a plan for a Landlock ABI (1 or more).
func Compile(p plan.Plan, abi int) Ruleset {
	rs := Ruleset{Handled: handled(p.Network, min(abi, NewestABI))}
	for g := range p.Grants() {
		rule := PathRule{Path: g.Path, ID: g.ID, Made: g.Made, Rights: rights(g) & rs.Handled.HandledAccessFS, Pin: g.Pin}
		if g.Split {
			rule = split(rule, g)
		}
		if rule.Rights != 0 {
			rs.Paths = append(rs.Paths, rule)
		}
	}
	if rs.Handled.HandledAccessNet&ll.AccessNetConnectTCP != 0 {
		rs.Connect = slices.Clone(p.Network.Connect.List)
	}
	if rs.Handled.HandledAccessNet&ll.AccessNetBindTCP != 0 {
		rs.Bind = slices.Clone(p.Network.Bind.List)
	}
	return rs
}

// split moves the rights of a rule to the entries of its directory.
func split(rule PathRule, g plan.Grant) PathRule {
	rule.Split = &Split{
		Entries: g.Entries, Changed: g.Changed,
		File: rule.Rights & fileRights, Dir: rule.Rights,
	}
	rule.Rights &= ll.AccessFSReadDir
	return rule
}

// Connections is the part of a plan's ruleset that is about connecting, for the
// thread that connects in the jail's place. ok is false when it restricts nothing.
func Connections(p plan.Plan, abi int) (rs Ruleset, ok bool) {
	all := Compile(p, abi)
	rs = Ruleset{Handled: llconf.Config{HandledAccessNet: all.Handled.HandledAccessNet & ll.AccessNetConnectTCP}, Connect: all.Connect}
	return rs, rs.Handled.HandledAccessNet != 0
}

// handled is everything that the ABI knows, less what the rules leave open.
func handled(n plan.Network, abi int) llconf.Config {
	all := []llconf.Config{
		{},
		llconf.V1, llconf.V2, llconf.V3, llconf.V4, llconf.V5, llconf.V6,
		llconf.V7, llconf.V8, llconf.V9, llconf.V10, llconf.V11,
	}[abi]
	c := llconf.Config{HandledAccessFS: all.HandledAccessFS, Scoped: all.Scoped}
	if n.UnixAny {
		c.HandledAccessFS &^= ll.AccessFSResolveUnix
	}
	// UDP (ABI 10) is left to seccomp, which refuses the sockets on every
	// kernel; with it there is no second meaning of "udp" to explain.
	if n.Connect.Set {
		c.HandledAccessNet |= all.HandledAccessNet & ll.AccessNetConnectTCP
	}
	if n.Bind.Set {
		c.HandledAccessNet |= all.HandledAccessNet & ll.AccessNetBindTCP
	}
	return c
}

// rights are the Landlock rights of a grant; a directory right on a file is
// EINVAL.
func rights(g plan.Grant) llconf.AccessFSSet {
	var r llconf.AccessFSSet
	if g.Access&plan.Read != 0 {
		r |= readRight
	}
	if g.Access&plan.Write != 0 {
		r |= writeRight
		if g.Path == "/dev" || strings.HasPrefix(g.Path, "/dev/") {
			r |= ll.AccessFSIoctlDev // terminals need it
		}
	}
	if g.Access&plan.Exec != 0 {
		r |= ll.AccessFSExecute
	}
	if g.Unix {
		r |= ll.AccessFSResolveUnix
	}
	if !g.Dir {
		r &= fileRights
	}
	return r
}
