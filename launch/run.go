package launch

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"jail/confine"
	"jail/landlock"
	"jail/plan"
	"jail/seccomp"
	"jail/supervise"
	"jail/trace"
)

// Options are not of the rules: how the run is attended.
type Options struct {
	Verbose bool
	// KeepRunning waits, after the command has ended, until whatever it left
	// running has ended too, instead of ending it.
	KeepRunning bool
}

// Probe asks the kernel what each layer can do here.
func Probe(h *plan.Host) {
	h.ABI, h.Landlock = landlock.Probe()
	h.Seccomp = seccomp.Probe()
	h.Mounts = plan.Fact{OK: true} // found by trying, when the stage is started
	h.Peers = peers(supervise.ProbePeers())
}

func peers(err error) plan.Fact {
	if err == nil {
		return plan.Fact{OK: true}
	}
	return plan.Fact{
		Why:    fmt.Sprintf("the kernel does not tell who listens (SO_PEERPIDFD, Linux 6.5): %v", err),
		Remedy: "inside, programs can't connect to each other's unix sockets; use a newer kernel",
	}
}

// Run starts the command under its plan. path is what is executed, argv[0] what
// the command sees as its name. On error nothing has been started.
//
// A plan with the mounts layer is run by a stage, and its exit status returned.
// Without it there is no parent: this process becomes the command, and Run
// returns only on error.
func Run(p plan.Plan, path string, argv []string, o Options) (status int, err error) {
	if err := p.Enforceable(); err != nil {
		return 0, err
	}
	if p.Mounts {
		return supervised(p, path, argv, o, Watcher{})
	}
	p, env, _, err := makeReady(p)
	if err != nil {
		return 0, err
	}
	s, err := steps(p)
	if err != nil {
		return 0, err
	}
	s.Path, s.Argv, s.Env = path, argv, env
	if s.Ruleset, err = landlock.Compile(p, p.ABI).FD(); err != nil {
		return 0, err
	}
	return 0, startProblem(s, s.Exec())
}

// Watcher is told what a run does.
type Watcher struct {
	// See is told of every system call of the jail, with the plan as the jail sees
	// the file system. Nil: nothing is traced.
	See func(inside plan.Plan, c trace.Call)
	// Built tells See of the programs that would be sealed, and of what they start.
	Built func(path string) bool
	// Stdout is the command's; nil: this process's own.
	Stdout *os.File
}

// Watch is Run with a watcher. It needs the mounts layer: without it nobody is left
// to watch.
func Watch(p plan.Plan, path string, argv []string, w Watcher) (status int, err error) {
	if err := p.Enforceable(); err != nil {
		return 0, err
	}
	if !p.Mounts {
		return 0, &plan.Problem{What: "without mounts jail becomes the command, and nobody is there to watch it", Hint: "leave the waiver out, where namespaces can be made"}
	}
	p.Traced = true
	return supervised(p, path, argv, Options{}, w)
}

// steps is what is put on the command, but for Landlock's ruleset.
func steps(p plan.Plan) (s confine.Steps, err error) {
	s.Filter, err = seccomp.Program(seccomp.Compile(p))
	s.Limits, s.Ignored = limits(p.Limits), confine.IgnoredAtStart()
	return s, err
}

// limits never lets a process dump core, since a dump holds memory that was read
// from files; the rest is as the rules say.
func limits(rules []plan.Limit) []confine.Limit {
	// 1, not 0: that is the value at which the kernel does not even start a
	// program that core_pattern pipes to (core(5)), and no file is that small.
	out := []confine.Limit{{Resource: unix.RLIMIT_CORE, Value: 1}}
	for _, l := range rules {
		out = append(out, confine.Limit{Resource: resource(l.Name), Value: l.Value})
	}
	return out
}

func resource(name string) int {
	switch name {
	case "open_files":
		return unix.RLIMIT_NOFILE
	case "file_size":
		return unix.RLIMIT_FSIZE
	case "cpu":
		return unix.RLIMIT_CPU
	case "memory":
		return unix.RLIMIT_AS
	}
	panic("launch: no limit is called " + name)
}

// startProblem words why the command was not executed.
func startProblem(s confine.Steps, err error) error {
	var f *confine.Failure
	switch {
	case !errors.As(err, &f):
		return err
	case f.Step == confine.Exec:
		return execProblem(s.Path, s.Argv, f.Errno)
	case f.Step == confine.Landlock && f.Errno == unix.E2BIG:
		return &plan.Problem{What: "too many Landlock layers around this process", Hint: "jails can be nested 16 deep (landlock(7)); start this one further out"}
	}
	return err
}

// execProblem words a failed execve(2). Confinement is in force by now, so
// EACCES may be the file's mode as well as a rule.
func execProblem(path string, argv []string, err error) error {
	p := &plan.Problem{What: fmt.Sprintf("executing %q: %v", path, err), Status: 126}
	switch {
	case errors.Is(err, unix.E2BIG):
		p.Hint = "the arguments and the environment together are too long for the kernel (see execve(2))"
		p.Status = 0
	case errors.Is(err, unix.ENOENT):
		p.Hint, p.Status = "the file or its interpreter does not exist", 127
	case errors.Is(err, unix.ENOEXEC):
		p.Hint = fmt.Sprintf("it is no program, and has no #! line; `bash %s` may be what you mean", path)
	case errors.Is(err, unix.EACCES):
		p.Hint = "its interpreter (the #! line, or the dynamic loader) must lie in an exec tree too"
	}
	return p
}
