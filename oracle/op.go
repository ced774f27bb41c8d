// Package oracle compares what a plan says with what the kernel does: its tests
// build random trees and rules, enter the real layers, and try random operations.
// This file is what runs inside.
package oracle

import (
	"path/filepath"
	"runtime"
	"syscall"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"jail/landlock"
)

// Orders are what is to be tried, and in which domain inside of the jail's.
type Orders struct {
	Ops    []Op
	Domain *landlock.Ruleset
}

// Enter puts this thread, which tries all, into the domain.
func (o Orders) Enter() error {
	if o.Domain == nil {
		return nil
	}
	runtime.LockOSThread()
	fd, err := o.Domain.FD()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return ll.LandlockRestrictSelf(fd, 0)
}

// Op is one operation on absolute paths. Outside of a jail each succeeds, and
// executing answers ENOEXEC: the files are no programs.
type Op struct {
	Do   string
	Path string
	To   string // of rename, exchange, link
}

// Result is what the kernel said. Lost means that the operation succeeded and
// could not be undone: what follows is tried on another tree than was foretold.
type Result struct {
	Errno syscall.Errno
	Lost  bool
}

// Reads, makes and moves are the operations by what they are tried on.
func Reads() []string {
	return []string{"read", "write", "rdwr", "append", "trunc", "truncate", "chmod", "utime", "exec"}
}

// Makes are those that make something new in a directory.
func Makes() []string { return []string{"create", "mkdir", "symlink", "fifo", "tmpfile"} }

// Moves are those that change names.
func Moves() []string { return []string{"unlink", "rename", "exchange", "link"} }

// Try does what the operation says, and undoes it.
func (o Op) Try() Result {
	err := o.do()
	r := Result{}
	switch e, ok := err.(syscall.Errno); {
	case err == nil:
		r.Lost = o.undo() != nil
	case ok:
		r.Errno = e
	default:
		r.Errno = unix.EIO
	}
	return r
}

func (o Op) do() error {
	switch o.Do {
	case "read":
		return open(o.Path, unix.O_RDONLY)
	case "write":
		return open(o.Path, unix.O_WRONLY)
	case "rdwr":
		return open(o.Path, unix.O_RDWR)
	case "append":
		return open(o.Path, unix.O_WRONLY|unix.O_APPEND)
	case "trunc":
		return open(o.Path, unix.O_WRONLY|unix.O_TRUNC)
	case "tmpfile":
		return open(o.Path, unix.O_TMPFILE|unix.O_WRONLY)
	case "create":
		return open(o.Path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	case "truncate":
		return unix.Truncate(o.Path, 1)
	case "chmod":
		return unix.Chmod(o.Path, 0o755)
	case "utime":
		return unix.UtimesNanoAt(unix.AT_FDCWD, o.Path, []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}, 0)
	case "mkdir":
		return unix.Mkdir(o.Path, 0o755)
	case "symlink":
		return unix.Symlink("nowhere", o.Path)
	case "fifo":
		return unix.Mkfifo(o.Path, 0o644)
	case "exec":
		return execute(o.Path)
	}
	return o.move()
}

func (o Op) move() error {
	switch o.Do {
	case "unlink":
		unix.Link(o.Path, o.saved()) // for undo, which fails without it
		err := unix.Unlink(o.Path)
		if err != nil {
			unix.Unlink(o.saved())
		}
		return err
	case "rename":
		return unix.Renameat2(unix.AT_FDCWD, o.Path, unix.AT_FDCWD, o.To, unix.RENAME_NOREPLACE)
	case "exchange":
		return unix.Renameat2(unix.AT_FDCWD, o.Path, unix.AT_FDCWD, o.To, unix.RENAME_EXCHANGE)
	case "link":
		return unix.Link(o.Path, o.To)
	}
	panic("oracle: no operation is called " + o.Do)
}

func (o Op) saved() string { return filepath.Join(filepath.Dir(o.Path), ".saved") }

func (o Op) undo() error {
	switch o.Do {
	case "create", "symlink", "fifo":
		return unix.Unlink(o.Path)
	case "mkdir":
		return unix.Rmdir(o.Path)
	case "unlink":
		return unix.Rename(o.saved(), o.Path)
	case "rename":
		return unix.Rename(o.To, o.Path)
	case "exchange":
		return o.move()
	case "link":
		return unix.Unlink(o.To)
	}
	return nil
}

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0o755)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// execute takes ENOEXEC for success: the kernel has passed all rules when it
// looks at the bytes.
func execute(path string) error {
	pid, err := syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{})
	switch {
	case err == nil:
		_, err = syscall.Wait4(pid, nil, 0, nil)
		return err
	case err == error(unix.ENOEXEC):
		return nil
	}
	return err
}
