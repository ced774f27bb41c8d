package trace

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Tracer traces one task and all that descends from it.
type Tracer struct {
	// See is told of every call that has ended, while its task is stopped, on the
	// tracer's thread.
	See func(Call)
	// Inner tells whether what executes a path, and all that it starts, is marked
	// like what was turned; nil: only that is.
	Inner func(path string) bool

	tasks map[int]*state
	done  chan struct{}

	mu    sync.Mutex
	begun bool
	turns map[int]Execveat
}

// Call is a system call that has ended.
type Call struct {
	Task   int // the thread, as numbered here
	Number int
	Args   [6]uint64
	Result int64 // -errno if it failed
	// Inner: the task, or one it descends from, was turned to another program.
	Inner bool
	// Path is what execve was asked to execute: its memory is gone afterwards.
	Path string
	// Turned: instead of this execve another is made (see [Tracer.Turn]), and Said
	// is its message.
	Turned bool
	Said   string
}

// Errno is why the call failed, 0 if it did not.
func (c Call) Errno() unix.Errno {
	if c.Result >= 0 || c.Result < -4095 {
		return 0
	}
	return unix.Errno(-c.Result)
}

// Execveat is the call that a waiting execve is turned into.
type Execveat struct {
	FD    int
	Empty uint64 // the address of an empty string
	Argv  uint64
	Envp  uint64
	// Inner marks the task: what runs from here on is under tighter rules.
	Inner bool
	// Said is what is printed instead of executing anything.
	Said string
}

// state is what is known of a task between two stops.
type state struct {
	call   Call
	inside bool // a call has begun
	turned bool // the next call was put there by Turn
	runner bool // what was put there runs, which is no program of the task's own
	inner  bool
}

// New returns a tracer that traces nothing yet.
func New(see func(Call)) *Tracer {
	return &Tracer{See: see, tasks: map[int]*state{}, turns: map[int]Execveat{}, done: make(chan struct{})}
}

// Attach begins with a task that waits in a call, once: begun tells whether this
// call is the one. again has the call made once more, so that it is seen from its
// beginning.
func (t *Tracer) Attach(task int, again func() error) (begun bool, err error) {
	t.mu.Lock()
	first := !t.begun
	t.begun = true
	t.mu.Unlock()
	if !first {
		return false, nil
	}
	started := make(chan error)
	go t.run(task, again, started)
	return true, <-started
}

// Wait returns when all that was traced has ended. It does so at once if nothing
// has been.
func (t *Tracer) Wait() {
	t.mu.Lock()
	begun := t.begun
	t.begun = true
	t.mu.Unlock()
	if begun {
		<-t.done
	}
}

// Turn has the call that a task waits in made again as another, when its answer
// has arrived. ptrace(2) knows one tracer for a task, so it is this one that does
// it. The answer must be ERESTARTNOINTR.
func (t *Tracer) Turn(task int, to Execveat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns[task] = to
}

// Forget takes back what no answer will come for.
func (t *Tracer) Forget(task int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.turns, task)
}

func (t *Tracer) turn(task int) (Execveat, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to, ok := t.turns[task]
	delete(t.turns, task)
	return to, ok
}

const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEEXEC

// run is the tracer's thread. It is never unlocked: the thread ends with it.
func (t *Tracer) run(task int, again func() error, started chan<- error) {
	runtime.LockOSThread()
	defer close(t.done)
	err := seize(task)
	if err == nil {
		// The interrupt is pending while the answer arrives, so the task stops
		// before it makes its call again.
		err = again()
	}
	started <- err
	if err != nil {
		return
	}
	for {
		var ws unix.WaitStatus
		// This thread's tracees only: other children of this process are not ours.
		pid, err := unix.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return // ECHILD: all have ended
		case ws.Stopped():
			t.stopped(pid, ws)
		default:
			delete(t.tasks, pid)
			t.Forget(pid)
		}
	}
}

func seize(task int) error {
	if err := ptrace(unix.PTRACE_SEIZE, task, 0, options); err != nil {
		return err
	}
	return ptrace(unix.PTRACE_INTERRUPT, task, 0, 0)
}
