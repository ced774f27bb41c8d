package supervise

import (
	"errors"
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
	listener seccomp.Listener
	root     int                   // the jail's root directory; no call that changes it is left
	runner   atomic.Pointer[inode] // nil before the first is given
	mark     uint64                // the hard RLIMIT_LOCKS of what is in the artifact domain

	mu     sync.Mutex
	orders map[int]*order  // by process
	said   map[string]bool // refusals by key

	tracers chan struct{}
	work    sync.WaitGroup // what uses root and the runner
}

type inode struct{ dev, ino uint64 }

// maxTracers bounds the threads that redirect at the same time.
const maxTracers = 16

// Serve answers until nobody is left who could call. It returns an error when
// it can't go on; the listener must then be closed, so that calls fail.
func Serve(listener seccomp.Listener, o Options) error {
	s := &server{
		Options: o, listener: listener, root: -1, mark: 1<<62 | rand.Uint64()>>3,
		orders: map[int]*order{}, said: map[string]bool{}, tracers: make(chan struct{}, maxTracers),
	}
	// Waking this thread on the caller's CPU needs it to be one thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := s.loop()
	s.work.Wait()
	if s.root >= 0 {
		unix.Close(s.root)
	}
	return err
}

func (s *server) loop() error {
	n := new(seccomp.Notification)
	for {
		if err := s.listener.Receive(n); err != nil {
			if errors.Is(err, seccomp.ErrGone) {
				return nil
			}
			return err
		}
		if s.root < 0 {
			s.root, _ = unix.Open(task(n.PID).proc("root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if s.root < 0 { // killed at once
				_ = s.listener.Refuse(n.ID, unix.EACCES)
				continue
			}
		}
		s.dispatch(n)
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

// marked tells whether a task is in the artifact domain already.
func (s *server) marked(t task) bool {
	var l unix.Rlimit
	return unix.Prlimit(int(t), rlimitLocks, nil, &l) == nil && l.Max == s.mark
}

// rlimitLocks has had no effect since Linux 2.4.25. A hard limit is inherited
// and never goes up again, so it tells what a process descends from.
const rlimitLocks = 10
