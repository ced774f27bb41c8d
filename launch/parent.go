package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"jail/guard"
	"jail/landlock"
	"jail/mounts"
	"jail/plan"
)

// supervised starts the command in namespaces of its own and waits for it. The
// parent stays outside: its only tasks are to pass signals on, to return the
// status, and to remove the private directories.
func supervised(p plan.Plan, path string, argv []string, o Options) (status int, err error) {
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
	status, err = attend(p, order{
		Layout: layout, Cwd: p.Cwd, Ruleset: landlock.Compile(layout.Adapt(p), p.ABI), Steps: s, Options: o,
	})
	if err == nil {
		tell(p, before)
	}
	return status, err
}

// attend starts the stage with its order and waits for its end.
func attend(p plan.Plan, o order) (status int, err error) {
	files, report, line, err := descriptors(o)
	if err != nil {
		return 0, err
	}
	defer line.Close()
	// The kernel ends the stage when this thread ends.
	runtime.LockOSThread()
	cmd := stageCommand(files)
	signals, terminal := takeSignals(), foreground()
	defer terminal.restore()
	if err := cmd.Start(); err != nil {
		return 0, p.WithoutMounts(plan.Cause(err))
	}
	for _, f := range files {
		f.Close()
	}
	go stopAlong(line)
	go passSignals(signals, line)
	if err := refused(p, report); err != nil {
		cmd.Wait()
		return 0, err
	}
	return exitStatus(cmd.Wait())
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

func stageCommand(files []*os.File) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{StageName}
	cmd.Env = []string{"TZ="} // or package time reads the zone at each start
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	if os.Geteuid() != 0 {
		// The user is mapped to itself and to nobody else; the capabilities
		// reach no further than the namespaces.
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return cmd
}

// descriptors opens what the stage gets, and the ends that stay.
func descriptors(o order) (files []*os.File, report, line *os.File, err error) {
	memory, err := o.write()
	if err != nil {
		return nil, nil, nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	return []*os.File{memory, w, os.NewFile(uintptr(pair[1]), "line")}, r, os.NewFile(uintptr(pair[0]), "line"), nil
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
