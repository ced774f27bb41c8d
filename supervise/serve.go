package supervise

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"jail/seccomp"
)

// server answers the calls of one jail.
type server struct {
	Options
	listener  seccomp.Listener
	attendant attendant
	root      int                   // the jail's root directory; no call that changes it is left
	runner    atomic.Pointer[inode] // nil before the first is given
	mark      uint64                // the hard RLIMIT_LOCKS of what is in the artifact domain
	limit     uint64                // and of what is not

	mu     sync.Mutex
	orders map[sent]*order
	given  map[int]*order  // the last, by process
	crowd  int             // how many of both there are when the next tidy is due
	said   map[string]bool // refusals by key

	tracers  chan struct{}
	connects chan struct{}
	work     sync.WaitGroup // what uses root and the runner
}

type inode struct{ dev, ino uint64 }

// maxTracers bounds the threads that redirect at the same time, maxConnects those
// that connect to the internet: with ten thousand the Go runtime would give up,
// and the jail end.
const (
	maxTracers  = 16
	maxConnects = 2048
)

// Serve answers until nobody is left who could call. It returns an error when
// it can't go on; the listener must then be closed, so that calls fail.
func Serve(listener seccomp.Listener, o Options) error {
	s := &server{
		Options: o, listener: listener, attendant: newAttendant(listener, o), root: -1,
		orders: map[sent]*order{}, given: map[int]*order{}, said: map[string]bool{},
		tracers: make(chan struct{}, maxTracers), connects: make(chan struct{}, maxConnects),
	}
	var err error
	if s.mark, s.limit, err = newMark(); err != nil {
		return err
	}
	// Waking this thread on the caller's CPU needs it to be one thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = s.loop()
	s.work.Wait()
	if s.root >= 0 {
		unix.Close(s.root)
	}
	return err
}

func (s *server) loop() error {
	n := new(seccomp.Notification)
	for {
		switch err := s.attendant.next(n); err {
		case nil:
		case errGone:
			return nil
		default:
			return fmt.Errorf("receiving a notification: %w", err)
		}
		if s.root < 0 {
			s.root, _ = unix.Open(task(n.PID).proc("root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if s.root < 0 { // killed at once
				_ = s.listener.Refuse(n.ID, unix.EACCES)
				continue
			}
		}
		if !s.attached(n) {
			s.dispatch(n)
		}
	}
}

// dispatch answers at once what is quick. n is used again after it.
func (s *server) dispatch(n *seccomp.Notification) {
	switch kind, c := calls(n); kind {
	case execute:
		s.execute(c)
	case mapping:
		s.library(n)
	case asking:
		s.access(c)
	case connecting:
		s.connect(*n)
	default:
		_ = s.listener.Refuse(n.ID, unix.ENOSYS)
	}
}

// pass leaves a call to the kernel, which is what refuses.
func (s *server) pass(id uint64) { _ = s.listener.Continue(id) }

// refuse answers; an answer that comes too late is of no interest.
func (s *server) refuse(id uint64, e unix.Errno) { _ = s.listener.Refuse(id, e) }

// A hard limit is inherited and never goes up again, and this one has had no
// effect since Linux 2.4.25: the runner lowers it to a number that nobody else
// has, and so marks what descends from it.
const rlimitLocks = 10

// newMark chooses a limit below the one that the jail has.
func newMark() (mark, limit uint64, err error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(rlimitLocks, &l); err != nil {
		return 0, 0, err
	}
	if l.Max < 2 {
		return 0, 0, fmt.Errorf("the limit on file locks (ulimit -x) is %d: jail tells artifacts by it and needs room below", l.Max)
	}
	return l.Max/2 + rand.Uint64N(l.Max/4+1), l.Max, nil
}

// needsLayer tells whether a task is not in the artifact domain yet, so that what
// it executes needs it. One that has lowered the limit itself may be either: it
// gets nothing. A runner that is in the domain already could be looked into by
// others there (see package runner), who would take the ruleset from it and, by
// landlock_add_rule(2), open the domain of all artifacts to come.
func (s *server) needsLayer(t task) (bool, error) {
	var l unix.Rlimit
	if err := unix.Prlimit(int(t), rlimitLocks, nil, &l); err != nil {
		return false, err
	}
	switch l.Max {
	case s.mark:
		return false, nil
	case s.limit:
		return true, nil
	}
	return false, Refusal{
		Key:     "ulimit -x",
		Message: "what was built here is not run: the limit on file locks (ulimit -x) was lowered inside, and artifacts are told by it",
	}
}

// confined tells whether a task may be in the artifact domain: one that is can't
// look like one that is not.
func (s *server) confined(t task) bool {
	var l unix.Rlimit
	return unix.Prlimit(int(t), rlimitLocks, nil, &l) != nil || l.Max < s.limit
}
