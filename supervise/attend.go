package supervise

/*
#cgo CFLAGS: -Wall -Wextra -O2
#include "attend.h"
*/
import "C"

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"jail/seccomp"
)

// attendant receives calls, and leaves most of them to the kernel at once: see
// attend.c. It is used by one thread.
type attendant struct{ c *C.struct_jail_attend }

func newAttendant(l seccomp.Listener, o Options) attendant {
	a := attendant{new(C.struct_jail_attend)}
	a.c.listener = C.int(l.FD())
	if o.Tracer == nil { // it has to see the first call
		a.c.exec, a.c.libraries = 1, 1
	}
	if !noticesEnd() {
		a.c.poll = 1
	}
	return a
}

// errGone says that nobody is left who could call.
const errGone = unix.ENOENT

// next waits for a call that has to be looked at.
func (a attendant) next(n *seccomp.Notification) error {
	if e := unix.Errno(C.jail_attend(a.c, (*C.struct_seccomp_notif)(unsafe.Pointer(n)))); e != 0 {
		return e
	}
	return nil
}

// remember leaves what is executed by this path to the kernel from now on.
func (a attendant) remember(name string) {
	if name != "" {
		C.jail_remember(&a.c.names, (*C.char)(unsafe.Pointer(unsafe.StringData(name))), C.uint(len(name)))
	}
}

// noticesEnd tells whether receiving ends when all have ended (Linux 6.11).
func noticesEnd() bool {
	var u unix.Utsname
	var major, minor int
	if unix.Uname(&u) != nil {
		return false
	}
	_, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 6 || major == 6 && minor >= 11)
}

// always tells whether an execve of c's path, which leads to real, is to be left
// to the kernel whoever makes it and whenever.
func (s *server) always(c call, real string) bool {
	for _, g := range s.Guides {
		if g.names(c, real) {
			return false
		}
	}
	return s.steady(c.path)
}

// maxLinks is the kernel's limit on the symbolic links in a path.
const maxLinks = 40

// steady tells whether nobody in the jail can change where a path leads, nor what
// is there.
func (s *server) steady(name string) bool {
	if s.Writable == nil || !filepath.IsAbs(name) || path.Clean(name) != name {
		return false
	}
	dir, rest := "/", name[1:]
	for range maxLinks {
		for rest != "" {
			var part string
			part, rest, _ = strings.Cut(rest, "/")
			if dir == "/proc" || s.Writable(dir) {
				return false
			}
			at := path.Join(dir, part)
			target, isLink := s.link(at)
			if !isLink {
				dir = at
				continue
			}
			if path.Clean(target) != target { // what ".." means after a link only the kernel knows
				return false
			}
			if !filepath.IsAbs(target) {
				target = dir + "/" + target
			}
			dir, rest = "/", strings.TrimPrefix(path.Join(target, rest), "/")
			break
		}
		if rest == "" {
			return !s.Writable(dir)
		}
	}
	return false
}

// link reads a symbolic link in the jail, in whose directory's path there is none.
func (s *server) link(name string) (target string, isLink bool) {
	var b [unix.PathMax]byte
	n, err := unix.Readlinkat(s.root, strings.TrimPrefix(name, "/"), b[:])
	return string(b[:max(n, 0)]), err == nil
}

// knows is for tests: whether a path in a process's memory is remembered.
func (a attendant) knows(pid int, at *byte) bool {
	return C.jail_knows(&a.c.names, C.pid_t(pid), C.uint64_t(uintptr(unsafe.Pointer(at)))) != 0
}
