package plan

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

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
	Home string
	Cwd  string // real path
	UID  int
	Env  []string
	Temp string   // where private temporary directories are made
	Own  []string // jail's own directories: never writable inside

	// ABI is Landlock's version, 0 when there is none; Landlock says why.
	ABI      int
	Landlock Fact
	Seccomp  Fact
	Mounts   Fact

	Tree Tree
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

// identify returns the identity of path itself, not of what a link leads to.
func identify(path string) (ID, fs.FileInfo, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return ID{}, nil, err
	}
	st := fi.Sys().(*syscall.Stat_t)
	return ID{Dev: st.Dev, Ino: st.Ino}, fi, nil
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

// realPath resolves every symbolic link. Of a path that does not exist the
// deepest existing part is resolved; exists is then false.
func realPath(path string) (real string, exists bool, err error) {
	real, err = filepath.EvalSymlinks(path)
	if err == nil {
		return real, true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	if _, lerr := os.Lstat(path); lerr == nil {
		return "", false, err // a dangling link
	}
	if path == "/" {
		return "", false, err
	}
	parent, _, err := realPath(filepath.Dir(path))
	if err != nil {
		return "", false, err
	}
	return filepath.Join(parent, filepath.Base(path)), false, nil
}
