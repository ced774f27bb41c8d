package launch

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"jail/landlock"
	"jail/plan"
	"jail/seccomp"
)

// Probe asks the kernel what each layer can do here.
func Probe(h *plan.Host) {
	h.ABI, h.Landlock = landlock.Probe()
	h.Seccomp = seccomp.Probe()
	h.Mounts = plan.Fact{OK: true} // found by trying, when the stage is started
}

// Run starts the command under its plan. path is what is executed, argv[0] what
// the command sees as its name. On error nothing has been started.
//
// A plan with the mounts layer is run by a stage, and its exit status returned.
// Without it there is no parent: this process becomes the command, and Run
// returns only on error.
func Run(p plan.Plan, path string, argv []string) (status int, err error) {
	if err := p.Enforceable(); err != nil {
		return 0, err
	}
	if p.Mounts {
		return supervised(p, path, argv)
	}
	p, env, _, err := makeReady(p)
	if err != nil {
		return 0, err
	}
	c, err := prepare(p, env)
	if err != nil {
		return 0, err
	}
	return 0, c.exec(path, argv)
}

// confinement is all that was made ready while failing was still cheap.
type confinement struct {
	ruleset int
	filter  []byte
	env     []string
	limits  []plan.Limit
}

func prepare(p plan.Plan, env []string) (c confinement, err error) {
	c = confinement{env: env, limits: p.Limits}
	if c.filter, err = seccomp.Program(seccomp.Compile(p)); err != nil {
		return confinement{}, err
	}
	c.ruleset, err = landlock.Compile(p, p.ABI).FD()
	return c, err
}

// exec confines this thread, step by step, and executes the command from it.
// Other threads are never confined; execve ends them.
func (c confinement) exec(path string, argv []string) error {
	runtime.LockOSThread()
	for _, step := range []func() error{
		noNewPrivs,
		dropCapabilities,
		func() error { return landlock.Restrict(c.ruleset) },
		closeDescriptors,
		func() error { return seccomp.Load(c.filter) },
		func() error { return setLimits(c.limits) }, // this process itself may be over them
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return execProblem(path, argv, unix.Exec(path, argv, c.env))
}

// noNewPrivs keeps set-id programs and file capabilities from giving anything
// back, and is what lets an ordinary user confine itself at all.
func noNewPrivs() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	return nil
}

// closeDescriptors marks all above standard error to be closed by execve. Rights
// that a descriptor carries are not taken back by any layer.
func closeDescriptors() error {
	err := unix.CloseRange(3, ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("close_range(2), to keep open files out of the jail: %w", err)
	}
	return nil
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
