package supervise

import (
	"fmt"

	"golang.org/x/sys/unix"

	"jail/runner"
)

// order waits for the runner of a process, and is kept to count the nesting of
// scripts.
type order struct {
	runner.Order
	layer   bool // put on the artifact domain
	started string
	depth   int
	taken   bool
}

// maxOrders is when what is left of processes that have ended is looked for.
const maxOrders = 4096

// expect records what the process is to run.
func (s *server) expect(t task, o *order) (group int, err error) {
	if group, err = t.group(); err != nil {
		return 0, err
	}
	if o.started, err = task(group).started(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.orders) >= maxOrders {
		for pid, o := range s.orders {
			if now, err := task(pid).started(); err != nil || now != o.started {
				delete(s.orders, pid)
			}
		}
	}
	s.orders[group] = o
	return group, nil
}

// forget takes an order back that was not given.
func (s *server) forget(group int, o *order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orders[group] == o {
		delete(s.orders, group)
	}
}

// nesting is how many scripts in a row have led to a runner that now executes
// the next.
func (s *server) nesting(t task) int {
	if !s.runs(t) {
		return 0
	}
	group, err := t.group()
	if err != nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.orders[group]; o != nil {
		return o.depth
	}
	return 0
}

// take returns the order of a runner, once.
func (s *server) take(t task) *order {
	if !s.runs(t) {
		return nil
	}
	started, err := t.started()
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[int(t)] // a runner has one thread
	if o == nil || o.taken || o.started != started {
		return nil
	}
	o.taken = true
	return o
}

// answerRunner gives a runner its order. Whoever was not sent hears what the
// kernel would have said.
func (s *server) answerRunner(c call) {
	o := s.take(c.task)
	if o == nil {
		s.refuse(c.id, unix.EINVAL)
		return
	}
	if err := s.give(c, o); err != nil {
		s.refuse(c.id, unix.EIO)
	}
}

func (s *server) give(c call, o *order) error {
	o.Layer = runner.Layer{Ruleset: -1}
	if o.layer && s.Domain.Ruleset != nil {
		n, err := s.listener.Give(c.id, int(s.Domain.Ruleset.Fd()))
		if err != nil {
			return fmt.Errorf("giving the ruleset: %w", err)
		}
		o.Layer.Ruleset = n
	}
	if o.layer {
		o.Layer.Filter, o.Layer.Drop = s.Domain.Filter, s.Domain.Drop
		o.Layer.Limits = append(o.Layer.Limits, s.Domain.Limits...)
		o.Layer.Limits = append(o.Layer.Limits, runner.Limit{Resource: rlimitLocks, Value: s.mark})
	}
	fd, err := sealedMemory(o.Bytes())
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return s.listener.AnswerWith(c.id, fd)
}

// sealedMemory puts text where the runner, and who traces it, can only read it.
func sealedMemory(text []byte) (int, error) {
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, err
	}
	_, err = unix.Write(fd, text)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
