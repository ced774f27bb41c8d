package supervise

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// redirect turns the waiting call into the start of the runner.
func (s *server) redirect(c call, o *order) {
	s.tracers <- struct{}{}
	defer func() { <-s.tracers }()
	runner, err := s.openRunner()
	if err != nil {
		s.tell("jail: error: " + err.Error())
		s.refuse(c.id, unix.EACCES)
		return
	}
	turn := s.turn
	if s.Tracer != nil {
		turn = s.turnTraced
	}
	if err := turn(c, runner, o); err != nil {
		s.untraceable(c, err)
	}
}

// turn has the call made again as execveat of the runner. Nothing is written to
// the caller's memory: a child of vfork shares its parent's, and below the
// stack pointer a Go program has what it needs.
func (s *server) turn(c call, runner *os.File, o *order) error {
	// ptrace(2) knows its tracer by thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid := int(c.task)
	if err := ptrace(unix.PTRACE_SEIZE, pid, 0); err != nil {
		return err
	}
	// If this fails the call waits no more, and the number may be another's by now:
	// of that nothing is changed.
	fd, err := s.listener.Give(c.id, int(runner.Fd()))
	if err == nil {
		err = s.expect(c.task, fd, o)
	}
	// The interrupt is pending while the answer arrives: the wait for it is not
	// interrupted by anything, and no instruction of the caller runs after it.
	// It fails if the caller is being killed, which is seen in finish.
	_ = ptrace(unix.PTRACE_INTERRUPT, pid, 0)
	if err != nil {
		s.refuse(c.id, errno(err))
	} else {
		err = s.listener.Restart(c.id)
	}
	return errors.Join(err, finish(c, fd, err == nil))
}

func (s *server) openRunner() (*os.File, error) {
	f, err := s.Runner()
	if err != nil || s.runner.Load() != nil {
		return f, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	s.runner.Store(&inode{st.Dev, st.Ino})
	return f, nil
}

// waitStop waits until a task has stopped; false if it has ended.
//
// It does not sleep in wait4(2): another thread may execute something at the same
// time, which ends this one, and of a thread group's leader that ends so the
// kernel wakes nobody (the numbers are exchanged before).
func waitStop(pid int) (ws unix.WaitStatus, stopped bool) {
	for tries := 0; ; tries++ {
		got, err := unix.Wait4(pid, &ws, unix.WALL|unix.WNOHANG, nil)
		switch {
		case err != nil && err != unix.EINTR:
			return ws, false
		case got == pid:
			return ws, ws.Stopped()
		case tries < 50: // it stops at once, mostly
			_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		default:
			time.Sleep(min(time.Duration(tries)*2*time.Microsecond, 5*time.Millisecond))
		}
	}
}

// finish waits for the stop, changes the registers and lets the task go. One that
// is killed meanwhile is waited for all the same: it is a zombie of its tracer's,
// and a thread of its process that executes something would wait for it for ever.
func finish(c call, fd int, valid bool) error {
	pid := int(c.task)
	for {
		ws, stopped := waitStop(pid)
		if !stopped {
			return unix.ESRCH
		}
		signal := 0
		if int(ws)>>16 != unix.PTRACE_EVENT_STOP {
			// A signal on its way: the call comes back by itself after it.
			signal, valid = int(ws.StopSignal()), false
		}
		var err error
		if valid {
			err = toExecveat(pid, fd, c.at+uint64(len(c.path)), c.argv, c.envp)
		}
		if e := ptrace(unix.PTRACE_DETACH, pid, uintptr(signal)); e == nil {
			return err
		}
	}
}

func ptrace(request, pid int, data uintptr) error {
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), 0, data, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// untraceable answers a call that could not be redirected.
func (s *server) untraceable(c call, err error) {
	switch {
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.ENOENT):
		return
	case errors.Is(err, unix.EPERM) && !s.listener.Valid(c.id):
		return // another thread has executed something: ptrace(2) says so of one that is ending
	case errors.Is(err, unix.EMFILE): // it has been told
		return
	}
	if tracer, e := c.task.status("TracerPid:"); e == nil && tracer != "0" {
		s.tell(fmt.Sprintf("jail: %q was built here and can't be started under a debugger or tracer; start it first, then attach to it", c.path))
	} else {
		s.tell(fmt.Sprintf("jail: %q was built here and can't be started: the kernel does not permit ptrace(2), which jail needs for it (kernel.yama.ptrace_scope must be below 3)", c.path))
	}
	s.refuse(c.id, unix.EACCES)
}
