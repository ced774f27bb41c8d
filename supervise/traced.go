package supervise

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"jail/seccomp"
	"jail/trace"
)

// attached begins to trace with the first call of all, which is then made again.
func (s *server) attached(n *seccomp.Notification) bool {
	if s.Tracer == nil {
		return false
	}
	id := n.ID
	begun, err := s.Tracer.Attach(int(n.PID), func() error { return s.listener.Restart(id) })
	if err != nil {
		s.tell(fmt.Sprintf("jail: error: the command can't be traced: %v (kernel.yama.ptrace_scope must be below 3)", err))
		s.refuse(id, unix.EPERM)
	}
	return begun
}

// turnTraced is turn for a task that has its tracer already.
func (s *server) turnTraced(c call, runner *os.File, o *order) error {
	fd, err := s.listener.Give(c.id, int(runner.Fd()))
	if err == nil {
		err = s.expect(c.task, fd, o)
	}
	if err != nil {
		s.refuse(c.id, errno(err))
		return err
	}
	s.Tracer.Turn(int(c.task), trace.Execveat{
		FD: fd, Empty: c.at + uint64(len(c.path)), Argv: c.argv, Envp: c.envp, Inner: o.layer, Said: o.Say,
	})
	if err := s.listener.Restart(c.id); err != nil {
		s.Tracer.Forget(int(c.task))
		return err
	}
	return nil
}
