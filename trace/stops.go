package trace

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// stopped handles a stop and lets the task go on. Errors mean that it was killed
// meanwhile, which the next wait tells.
func (t *Tracer) stopped(pid int, ws unix.WaitStatus) {
	const syscallStop = unix.SIGTRAP | 0x80
	var signal uintptr
	switch sig, event := ws.StopSignal(), int(ws)>>16; {
	case event == unix.PTRACE_EVENT_STOP && sig != unix.SIGTRAP:
		_ = ptrace(unix.PTRACE_LISTEN, pid, 0, 0) // it is stopped for everybody, until SIGCONT
		return
	case event == unix.PTRACE_EVENT_EXEC:
		t.executed(pid)
	case event == unix.PTRACE_EVENT_FORK, event == unix.PTRACE_EVENT_VFORK, event == unix.PTRACE_EVENT_CLONE:
		t.forked(pid)
	case event != 0:
	case sig == syscallStop:
		t.syscall(pid)
	default:
		signal = uintptr(sig)
	}
	_ = ptrace(unix.PTRACE_SYSCALL, pid, 0, signal)
}

func (t *Tracer) task(pid int) *state {
	s := t.tasks[pid]
	if s == nil {
		s = new(state)
		t.tasks[pid] = s
	}
	return s
}

// forked has the new task inherit. It may have stopped already.
func (t *Tracer) forked(parent int) {
	var child uint64
	if ptrace(unix.PTRACE_GETEVENTMSG, parent, 0, uintptr(unsafe.Pointer(&child))) == nil {
		t.task(int(child)).inner = t.task(parent).inner
	}
}

// executed follows the thread that has executed: it has its process's number now.
func (t *Tracer) executed(pid int) {
	var before uint64
	if ptrace(unix.PTRACE_GETEVENTMSG, pid, 0, uintptr(unsafe.Pointer(&before))) == nil && int(before) != pid {
		t.tasks[pid] = t.task(int(before))
		delete(t.tasks, int(before))
	}
}

// info is struct ptrace_syscall_info: data is the number and the arguments at the
// beginning of a call, the result at its end.
type info struct {
	op   uint8
	_    [3]uint8
	arch uint32
	_    [2]uint64
	data [8]uint64
}

// The values of op: PTRACE_SYSCALL_INFO_ENTRY and _EXIT.
const (
	entry = 1
	exit  = 2
)

// syscall notes the beginning of a call and reports its end.
func (t *Tracer) syscall(pid int) {
	var i info
	s := t.task(pid)
	if err := ptrace(unix.PTRACE_GET_SYSCALL_INFO, pid, unsafe.Sizeof(i), uintptr(unsafe.Pointer(&i))); err != nil {
		return
	}
	switch {
	case i.op == entry && i.arch == auditArch:
		s.inside = true
		s.call = Call{Task: pid, Number: int(i.data[0]), Args: [6]uint64(i.data[1:7]), Inner: s.inner}
		s.call.Path = s.call.program()
	case i.op == exit && s.inside:
		s.inside = false
		s.call.Task, s.call.Result = pid, int64(i.data[0])
		t.ended(pid, s)
	}
}

// restartNoIntr is ERESTARTNOINTR. The kernel makes a call again by itself only on
// the way to a signal handler or a stop; here the tracer does.
const restartNoIntr = 513

func (t *Tracer) ended(pid int, s *state) {
	to, turn := t.turn(pid)
	if turn && s.call.Result == -restartNoIntr && executeAgain(pid, to) == nil {
		s.turned, s.inner = true, s.inner || to.Inner
		s.call.Result, s.call.Turned, s.call.Said = 0, true, to.Said
		t.See(s.call)
		return
	}
	executed := s.call.executes() && s.call.Result == 0
	if executed && s.call.Path != "" && t.Inner != nil && t.Inner(s.call.Path) {
		s.inner = true
	}
	switch {
	case s.turned && executed: // the call that was put there
		s.turned, s.runner = false, true
	case s.turned:
		s.turned = false
	case s.runner && executed:
		s.runner = false
	case s.runner, s.call.Result < -511: // beyond are the kernel's own restarts
	default:
		t.See(s.call)
	}
}

func ptrace(request, pid int, address, data uintptr) error {
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), address, data, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}
