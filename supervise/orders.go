package supervise

import (
	"fmt"
	"maps"

	"golang.org/x/sys/unix"

	"jail/runner"
)

// order waits for the runner of a process. What was given last is kept, to count
// the nesting of scripts.
type order struct {
	runner.Order
	layer bool   // put on the artifact domain
	life  uint64 // of the process
	depth int
	begun bool // the runner has been executed
	done  bool // and has executed its file
}

// sent names an order: two threads of a process may execute at the same time, and
// each is given a descriptor of its own.
type sent struct{ group, fd int }

// maxOrders is when what is left of processes that have ended is looked for first.
const maxOrders = 4096

// expect records what the process is to run from a descriptor.
func (s *server) expect(t task, fd int, o *order) error {
	leader, err := t.leader()
	if err != nil {
		return err
	}
	if o.life, err = leader.life(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.orders)+len(s.given) >= max(s.crowd, maxOrders) {
		s.tidy()
	}
	s.orders[sent{int(leader), fd}] = o
	return nil
}

// tidy forgets processes that have ended. The next time is when there are twice as
// many as live now: looking at each for every execution of thousands that live
// keeps all of them waiting for minutes.
func (s *server) tidy() {
	gone := func(pid int, o *order) bool {
		now, err := task(pid).life()
		return err != nil || now != o.life
	}
	maps.DeleteFunc(s.orders, func(k sent, o *order) bool { return gone(k.group, o) })
	maps.DeleteFunc(s.given, gone)
	s.crowd = 2 * (len(s.orders) + len(s.given))
}

// nesting is how many scripts in a row have led to a runner that now executes
// the next.
func (s *server) nesting(t task) int {
	if !s.runs(t) {
		return 0
	}
	life, err := t.life()
	if err != nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.given[int(t)]; o != nil && o.life == life { // a runner has one thread
		return o.depth
	}
	return 0
}

// ordered tells whether a call is the redirected one that starts a runner, or a
// runner's own, for the seal that it was ordered to execute. Of each order it says
// so once, before any file is looked up. The interpreter of a script is none of
// these: a program that was told its own name writes that into scripts. What comes
// from a process of the same number is no matter: the kernel decides on what is left
// to it.
func (s *server) ordered(c call) bool {
	switch {
	case c.flags == unix.AT_EMPTY_PATH:
		s.mu.Lock()
		defer s.mu.Unlock()
		o := s.orders[sent{int(c.task), int(c.dir)}]
		return o != nil && once(&o.begun)
	case c.flags != 0 || c.dir != unix.AT_FDCWD:
		return false
	}
	s.mu.Lock()
	o := s.given[int(c.task)]
	s.mu.Unlock()
	if o == nil || len(o.Words) > 0 {
		return false
	}
	path, err := c.task.text(c.at, unix.PathMax)
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && path == o.Path && once(&o.done)
}

// once is true the first time.
func once(done *bool) bool {
	first := !*done
	*done = true
	return first
}

// take returns the order of a runner, once.
func (s *server) take(t task, fd int) *order {
	life, err := t.life()
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sent{int(t), fd}
	o := s.orders[key]
	if o == nil || o.life != life {
		return nil
	}
	delete(s.orders, key)
	s.given[int(t)] = o
	return o
}

// answerRunner gives a runner its order. Who is no runner hears what the kernel
// would have said; a runner that was not sent ends, and so does one whose tracer
// would get what it is given.
func (s *server) answerRunner(c call) {
	if !s.runs(c.task) {
		s.refuse(c.id, unix.EINVAL)
		return
	}
	if c.task.traced() { // nobody becomes its tracer any more: see package runner
		s.refuse(c.id, unix.EPERM)
		return
	}
	o := s.take(c.task, int(c.argv))
	if o == nil {
		s.refuse(c.id, unix.ESRCH)
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
