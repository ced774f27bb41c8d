package supervise

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"jail/seccomp"
)

// call is one that names a file: execve, execveat and the access family.
type call struct {
	id    uint64
	task  task
	dir   int32
	at    uint64 // where the path is
	argv  uint64
	envp  uint64
	mode  uint32
	flags uint32
	path  string
}

type kind int

const (
	unknown kind = iota
	execute
	mapping
	asking
	connecting
)

// calls reads the arguments. The kernel takes the low 32 bits of an int.
func calls(n *seccomp.Notification) (kind, call) {
	c := call{id: n.ID, task: task(n.PID), dir: unix.AT_FDCWD}
	a := n.Args
	switch n.Call {
	case unix.SYS_EXECVE:
		c.at, c.argv, c.envp = a[0], a[1], a[2]
		return execute, c
	case unix.SYS_EXECVEAT:
		c.dir, c.at, c.argv, c.envp, c.flags = int32(a[0]), a[1], a[2], a[3], uint32(a[4])
		return execute, c
	case unix.SYS_FACCESSAT:
		c.dir, c.at, c.mode = int32(a[0]), a[1], uint32(a[2])
		return asking, c
	case unix.SYS_FACCESSAT2:
		c.dir, c.at, c.mode, c.flags = int32(a[0]), a[1], uint32(a[2]), uint32(a[3])
		return asking, c
	case sysAccess:
		c.at, c.mode = a[0], uint32(a[1])
		return asking, c
	case unix.SYS_MMAP:
		return mapping, c
	case unix.SYS_CONNECT:
		return connecting, c
	}
	return unknown, c
}

// find reads the path and opens what it means.
func (s *server) find(c *call) (*file, error) {
	var err error
	if c.path, err = c.task.text(c.at, unix.PathMax); err != nil {
		return nil, err
	}
	if c.path == "" && c.flags&unix.AT_EMPTY_PATH == 0 {
		return nil, unix.ENOENT
	}
	var flags uint64
	if c.flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		flags = unix.O_NOFOLLOW
	}
	return s.lookup(c.task, c.dir, c.path, flags)
}

func nativeUint64(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }
