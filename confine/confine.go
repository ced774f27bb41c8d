package confine

/*
#cgo CFLAGS: -Wall -Wextra -O2
#include "confine.h"
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Steps is what is put on a process before it becomes the command.
type Steps struct {
	Ruleset  int    // a Landlock ruleset
	Filter   []byte // BPF
	Listener int    // a unix socket to send the filter's listener on; 0 if the filter asks nobody
	Limits   []Limit
	Ignored  uint64 // signals that the command finds ignored, bit n-1 for n

	Path string
	Argv []string
	Env  []string
}

// Limit is an upper bound for one RLIMIT_*.
type Limit struct {
	Resource int
	Value    uint64
}

// IgnoredAtStart are the signals that this process found ignored; Go has taken most
// of them for itself since.
func IgnoredAtStart() uint64 { return uint64(C.jail_ignored()) }

// Step names what failed.
type Step int

// The steps that callers word themselves.
const (
	Landlock Step = C.JAIL_LANDLOCK
	Exec     Step = C.JAIL_EXEC

	stepSeccomp  Step = C.JAIL_SECCOMP
	stepListener Step = C.JAIL_LISTENER
)

func (s Step) String() string {
	return map[Step]string{
		C.JAIL_NO_NEW_PRIVS: "no_new_privs",
		C.JAIL_CAPABILITIES: "dropping capabilities",
		C.JAIL_LANDLOCK:     "landlock_restrict_self(2)",
		C.JAIL_CLOSE:        "close_range(2), to keep open files out of the jail",
		C.JAIL_SECCOMP:      "seccomp(2)",
		C.JAIL_LISTENER:     "handing over the filter's listener",
		C.JAIL_LIMITS:       "setrlimit(2)",
		C.JAIL_EXEC:         "execve(2)",
		C.JAIL_FORK:         "starting a process",
	}[s]
}

// Failure is the step that failed. Nothing was executed.
type Failure struct {
	Step  Step
	Errno unix.Errno
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Step, f.Errno) }

func (f *Failure) Unwrap() error { return f.Errno }

// Exec confines the calling thread and executes the command in the place of this
// process: other threads are never confined, execve ends them. It returns only on
// failure, and the thread must not be used for anything else then.
func (s Steps) Exec() error {
	runtime.LockOSThread()
	if err := s.check(); err != nil {
		return err
	}
	steps, free := s.c()
	defer free()
	return failure(C.jail_exec(steps))
}

// Start does the same in a child. When it returns without an error the command
// has been executed.
func (s Steps) Start() (pid int, err error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	steps, free := s.c()
	defer free()
	var f C.struct_jail_failure
	if pid := C.jail_start(steps, &f); pid > 0 {
		return int(pid), nil
	}
	return 0, failure(f)
}

// check refuses to start anything without a filter.
func (s Steps) check() error {
	if len(s.Filter) == 0 || len(s.Filter)%unix.SizeofSockFilter != 0 {
		return &Failure{Step: stepSeccomp, Errno: unix.EINVAL}
	}
	return nil
}

func failure(f C.struct_jail_failure) error {
	return &Failure{Step: Step(f.step), Errno: unix.Errno(f.error)}
}

// c copies the steps to memory that C may keep pointers into.
func (s Steps) c() (steps *C.struct_jail_steps, free func()) {
	var owned []unsafe.Pointer
	own := func(p unsafe.Pointer) unsafe.Pointer {
		owned = append(owned, p)
		return p
	}
	list := func(list []string) **C.char {
		out := (**C.char)(own(C.calloc(C.size_t(len(list)+1), C.size_t(unsafe.Sizeof(uintptr(0))))))
		for i, v := range list {
			unsafe.Slice(out, len(list))[i] = (*C.char)(own(unsafe.Pointer(C.CString(v))))
		}
		return out
	}
	steps = (*C.struct_jail_steps)(own(C.calloc(1, C.sizeof_struct_jail_steps)))
	steps.ruleset, steps.listener = C.int(s.Ruleset), C.int(s.Listener)
	if s.Listener == 0 {
		steps.listener = -1
	}
	steps.ignored = C.ulonglong(s.Ignored)
	steps.path = (*C.char)(own(unsafe.Pointer(C.CString(s.Path))))
	steps.argv, steps.envp = list(s.Argv), list(s.Env)
	steps.filter.len = C.ushort(len(s.Filter) / unix.SizeofSockFilter)
	steps.filter.filter = (*C.struct_sock_filter)(own(C.CBytes(s.Filter)))
	steps.nlimits = C.size_t(len(s.Limits))
	steps.limits = (*C.struct_jail_limit)(own(C.calloc(C.size_t(len(s.Limits)+1), C.sizeof_struct_jail_limit)))
	for i, l := range s.Limits {
		unsafe.Slice(steps.limits, len(s.Limits))[i] = C.struct_jail_limit{resource: C.int(l.Resource), value: C.ulonglong(l.Value)}
	}
	return steps, func() {
		for _, p := range owned {
			C.free(p)
		}
	}
}
