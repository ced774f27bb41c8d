package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"jail/guard"
	"jail/landlock"
	"jail/mounts"
	"jail/plan"
)

// supervised starts the command in namespaces of its own and waits for it. The
// parent stays outside: its only tasks are to pass signals on, to return the
// status, and to remove the private directories.
func supervised(p plan.Plan, path string, argv []string, o Options) (status int, err error) {
	// The stage gets ready while its order is made.
	stage, err := startStage(p)
	if err != nil {
		return 0, err
	}
	defer stage.close()
	p, env, temp, err := makeReady(p)
	if err != nil {
		return 0, err
	}
	defer remove(temp)
	layout := mounts.Compile(p, temp)
	if layout.Hides() {
		if layout.Nothing, err = privateTemp(p.Temp, p.UID); err != nil {
			return 0, err
		}
		defer remove(layout.Nothing)
		if err := mounts.MakeNothing(layout.Nothing); err != nil {
			return 0, err
		}
	}
	s, err := steps(p)
	if err != nil {
		return 0, err
	}
	s.Path, s.Argv, s.Env = path, argv, env
	before := snapshot(p)
	status, err = stage.run(p, order{
		Layout: layout, Cwd: p.Cwd, Ruleset: landlock.Compile(layout.Adapt(p), p.ABI), Steps: s, Options: o,
	})
	if err == nil {
		tell(p, before)
	}
	return status, err
}

// snapshot reads, before the start, what a run should not change unnoticed.
func snapshot(p plan.Plan) guard.Snapshot {
	if !p.Guard || p.Access(p.Tree.Root)&plan.Write == 0 {
		return nil
	}
	return guard.Take(p.Tree.Root, p.Repositories)
}

// maxTold keeps the report short; git status has the rest.
const maxTold = 12

// tell reports, on standard error and only if there is something, which files
// that run on the host are not what they were.
func tell(p plan.Plan, before guard.Snapshot) {
	if before == nil {
		return
	}
	changes := before.Diff(guard.After(p))
	for i, c := range changes {
		if i == maxTold {
			fmt.Fprintf(os.Stderr, "jail: note: and %d more\n", len(changes)-i)
			break
		}
		fmt.Fprintf(os.Stderr, "jail: note: %s %q (%s): it runs on the host, look before you use it\n", c.What, c.Path, c.Why)
	}
}

// refused waits until the command runs, or returns why it does not.
func refused(p plan.Plan, report io.ReadCloser) error {
	defer report.Close()
	text, err := io.ReadAll(report)
	if err != nil || len(text) == 0 {
		return err
	}
	var r refusal
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	if r.NoMounts {
		return p.WithoutMounts(&r.Problem)
	}
	return &r.Problem
}

// exitStatus is the command's: init ends as it did.
func exitStatus(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode(), nil
	}
	return 0, fmt.Errorf("the jail's init ended: %w", err)
}
