package supervise

import (
	"errors"
	"fmt"
	"os"
	"runtime"

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
	group, err := s.expect(c.task, o)
	if err != nil {
		s.refuse(c.id, unix.EACCES) // it has ended
		return
	}
	if err := s.turn(c, runner); err != nil {
		s.forget(group, o)
		s.untraceable(c, err)
	}
}

// turn has the call made again as execveat of the runner. Nothing is written to
// the caller's memory: a child of vfork shares its parent's, and below the
// stack pointer a Go program has what it needs.
func (s *server) turn(c call, runner *os.File) error {
	fd, err := s.listener.Give(c.id, int(runner.Fd()))
	if err != nil {
		return fmt.Errorf("giving the runner: %w", err)
	}
	// ptrace(2) knows its tracer by thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid := int(c.task)
	if err := ptrace(unix.PTRACE_SEIZE, pid, 0); err != nil {
		return err
	}
	// The number was the caller's when it was seized if the call still waits.
	// The interrupt is pending while the answer arrives: the wait for it is not
	// interrupted by anything, and no instruction of the caller runs after it.
	valid := s.listener.Valid(c.id)
	if err := ptrace(unix.PTRACE_INTERRUPT, pid, 0); err != nil {
		return err
	}
	if valid {
		valid = s.listener.Restart(c.id) == nil
	}
	return finish(c, fd, valid)
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

// finish waits for the stop, changes the registers and lets the task go.
func finish(c call, fd int, valid bool) error {
	pid := int(c.task)
	var ws unix.WaitStatus
	for {
		got, err := unix.Wait4(pid, &ws, unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || got != pid || !ws.Stopped() {
			return unix.ESRCH // killed
		}
		break
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
	return errors.Join(err, ptrace(unix.PTRACE_DETACH, pid, uintptr(signal)))
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
	case errors.Is(err, unix.EMFILE):
		s.refuse(c.id, unix.EMFILE)
		return
	}
	if tracer, e := c.task.status("TracerPid:"); e == nil && tracer != "0" {
		s.tell(fmt.Sprintf("jail: %q was built here and can't be started under a debugger or tracer; start it first, then attach to it", c.path))
	} else {
		s.tell(fmt.Sprintf("jail: %q was built here and can't be started: the kernel does not permit ptrace(2), which jail needs for it (kernel.yama.ptrace_scope must be below 3)", c.path))
	}
	s.refuse(c.id, unix.EACCES)
}
