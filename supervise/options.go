package supervise

import (
	"errors"
	"os"

	"jail/runner"
	"jail/trace"
)

// Options say what a supervisor does. The functions are called from several
// goroutines at once.
type Options struct {
	// Runner returns a binary that links package runner, opened for reading, where
	// the jail may execute it. It is asked when the first call is redirected. With
	// [ErrNoRunner] what would be said in the jail is told to the terminal.
	Runner func() (*os.File, error)

	// Runs is that directory, as the jail sees it: what is executed there is
	// sealed already.
	Runs string

	// Program and Library seal a file that is opened for reading and return the
	// seal's path. The error is a [Refusal], or has an errno for the caller.
	Program func(Request) (string, error)
	Library func(Request) (string, error) // nil: libraries are left to the kernel

	// Original is the path of what a seal was made of; false if it is no program's
	// seal.
	Original func(sealed string) (string, bool)

	// Writable tells whether a rule lets the jail write a file or directory. Of a
	// file to be executed it is asked on a read-only mount only, as of protected files
	// in a write tree: on another the mount says it.
	Writable func(path string) bool

	// Denied has something to say on a file that the kernel will not execute.
	Denied func(path string) (Refusal, bool)

	// Unsealed has something to say on a file that the jail may write, as Program
	// would be asked for, where there is none and the kernel does not execute it.
	Unsealed func(path string, pid int) Refusal

	// Tracer traces the jail from its first call on. A task has one tracer, so calls
	// are turned by this one. Nil: the jail is not traced.
	Tracer *trace.Tracer

	Domain  Domain
	Guides  []Guide
	Sockets Sockets

	// Tell is for what the person at the terminal has to know.
	Tell func(line string)
}

// ErrNoRunner says that the jail has none, and is to have none.
var ErrNoRunner = errors.New("nothing of jail's own is executed in this jail")

// Request is a file to be sealed.
type Request struct {
	File *os.File // opened for reading
	Path string   // real, in the jail
	PID  int      // who executes or maps it, as numbered outside
}

// Domain is what an artifact runs under, beside what its caller is under.
type Domain struct {
	Ruleset *os.File // of Landlock; nil: no second layer
	Filter  []byte
	Limits  []runner.Limit
	Drop    []string // patterns of variables
}

// Guide stops a command and says something instead.
type Guide struct {
	Words []string // the program's base name, then the arguments that follow it
	Refusal
}

// Refusal is what a command prints instead of running.
type Refusal struct {
	Key     string // what it is about: said in full once for each
	Message string
	Short   string // said the next time
	Status  uint8  // 0 stands for 126
}

func (r Refusal) Error() string { return r.Message }

// Sockets says how connect(2) is answered; only if the filter asks.
type Sockets struct {
	Allowed []string // real paths outside that may be connected to
	Ports   *os.File // a Landlock ruleset of ports; nil: all are free
}
