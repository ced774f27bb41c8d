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
	"jail/trace"
)

// supervised starts the command in namespaces of its own and waits for it. The
// parent stays outside: its only tasks are to pass signals on, to return the
// status, and to remove the private directories.
func supervised(p plan.Plan, path string, argv []string, o Options, w Watcher) (status int, err error) {
	// The stage gets ready while its order is made.
	stage, err := startStage(p, w.Stdout)
	if err != nil {
		return 0, err
	}
	defer stage.close()
	changes, err := guard.Start(p)
	if err != nil {
		return 0, err
	}
	p, env, temp, err := makeReady(p)
	if err != nil {
		return 0, err
	}
	defer remove(temp)
	var seals *seals
	if p.Supervised() {
		if p.HasPlace() {
			p = p.WithSeals()
		}
		seals = newSeals(stage.hand, p.Tree.Root, argv[0])
		defer seals.close()
	}
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
	inside := layout.Adapt(p)
	order := order{Layout: layout, Cwd: p.Cwd, Ruleset: landlock.Compile(inside, p.ABI), Steps: s, Verbose: o.Verbose, KeepRunning: o.KeepRunning}
	if seals != nil {
		seals.plan = inside
		if w.See != nil {
			seals.tracer = trace.New(func(c trace.Call) { w.See(inside, c) })
			seals.tracer.Inner = w.Built
			defer seals.tracer.Wait()
		}
		artifacts := landlock.Compile(inside.ForArtifacts(), p.ABI)
		order.Artifacts = &artifacts
	}
	status, err = stage.run(p, order, seals)
	if err == nil {
		changes.End(layout.Unkept(), os.Stderr)
	}
	return status, err
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
