package plan

import (
	"os"
	"strings"
	"syscall"

	"jail/digest"
	"jail/rules"
)

// These words of package rules are part of what a plan says; packages that see
// only the plan need no other name for them.
type (
	Access  = rules.Access
	Origin  = rules.Origin
	Problem = rules.Problem
	Network = rules.Network
	Limit   = rules.Limit
)

// The access bits of package rules.
const (
	Read  = rules.Read
	Write = rules.Write
	Exec  = rules.Exec
)

// Fact is what probing for a layer found.
type Fact struct {
	OK     bool
	Why    string // when not OK
	Remedy string // what the person can do about it
}

// Host is what compilation must know about the machine and the caller.
type Host struct {
	Home  string
	Cwd   string // real path
	UID   int
	Env   []string
	Temp  string   // where private temporary directories are made
	Own   []string // jail's own directories: never writable inside
	State string   // the one of them for what it keeps: seals and journals

	// ABI is Landlock's version, 0 when there is none; Landlock says why.
	ABI      int
	Landlock Fact
	Seccomp  Fact
	Mounts   Fact
	Peers    Fact // who listens on a unix socket is told

	Tree Tree

	// Whole: Plan.Proof is to be about all exec trees, for somebody who reads it, also
	// where W^X can be proved with less to look at.
	Whole bool

	// Digests remembers the digests of programs; nil: nothing is remembered.
	Digests *digest.Cache
}

func (h Host) getenv(name string) string {
	for _, kv := range h.Env {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v
		}
	}
	return ""
}

// ID names an inode for as long as it lives.
type ID struct {
	Dev, Ino uint64
}

// ownedBy tells whether path exists and belongs to uid.
func ownedBy(path string, uid int) bool {
	fi, err := os.Lstat(path)
	return err == nil && int(fi.Sys().(*syscall.Stat_t).Uid) == uid
}

// within tells whether path is dir or lies beneath it. Both are clean and
// absolute.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
