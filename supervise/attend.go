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
		a.c.shortcuts = 1
	}
	if !noticesEnd() {
		a.c.poll = 1
	}
	return a
}

// errGone says that nobody is left who could call.
const errGone = unix.ENOENT

// What next fills in is one structure in both languages.
var _ [C.sizeof_struct_seccomp_notif]byte = [unsafe.Sizeof(seccomp.Notification{})]byte{}

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

// noticesEnd tells whether receiving ends when all have ended (Linux 6.11). It goes
// by the version: to try it takes a process under a filter that ends, at each start.
// Who says that it is older than it is polls, which costs a call each time.
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
	at, rest, links := "/", name[1:], 0
	for rest != "" {
		part, after, _ := strings.Cut(rest, "/")
		if at == "/proc" || s.Writable(at) {
			return false
		}
		target, isLink := s.link(path.Join(at, part))
		if !isLink {
			at, rest = path.Join(at, part), after
			continue
		}
		// What ".." means after a link only the kernel knows.
		if links++; links > maxLinks || path.Clean(target) != target {
			return false
		}
		if !filepath.IsAbs(target) {
			target = path.Join(at, target)
		}
		at, rest = "/", strings.TrimPrefix(path.Join(target, after), "/")
	}
	return !s.Writable(at)
}

// link reads a symbolic link in the jail, in whose directory's path there is none.
func (s *server) link(name string) (target string, isLink bool) {
	var b [unix.PathMax]byte
	n, err := unix.Readlinkat(s.root, strings.TrimPrefix(name, "/"), b[:])
	return string(b[:max(n, 0)]), err == nil
}

// knows is for tests, which can't call C themselves: whether a path in a process's
// memory is remembered.
func (a attendant) knows(pid int, at *byte) bool {
	return C.jail_knows(&a.c.names, C.pid_t(pid), C.uint64_t(uintptr(unsafe.Pointer(at)))) != 0
}
