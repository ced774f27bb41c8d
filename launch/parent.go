package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"jail/guard"
	"jail/mounts"
	"jail/plan"
)

// order is what the parent tells the stage and the stage's child, on a sealed
// memory file: nothing of it stands in arguments or the environment.
type order struct {
	Plan      plan.Plan
	Layout    mounts.Layout
	Path      string
	Argv, Env []string
}

// The descriptors that a stage finds open.
const (
	orderFD = 3
	exeFD   = 4 // jail's own binary, opened before anything was noexec
	errorFD = 5 // a pipe: what is written there is why nothing was started
	lineFD  = 6 // a socket to the parent; its end is the parent's end
)

// supervised starts the command in namespaces of its own and waits for it. The
// parent stays outside: its only tasks are to pass signals on, to return the
// status, and to remove the private directories.
func supervised(p plan.Plan, path string, argv []string) (status int, err error) {
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
	before := snapshot(p)
	text, err := json.Marshal(order{Plan: forStage(p), Layout: layout, Path: path, Argv: argv, Env: env})
	if err != nil {
		return 0, err
	}
	files, report, line, err := descriptors(text)
	if err != nil {
		return 0, err
	}
	// The kernel ends the stage when this thread ends.
	runtime.LockOSThread()
	cmd := stageCommand(files)
	started, terminal := passSignals(cmd), foreground()
	defer terminal.restore()
	if err := cmd.Start(); err != nil {
		return 0, p.WithoutMounts(plan.Cause(err))
	}
	for _, f := range files {
		f.Close()
	}
	go stopAlong(line)
	if err := refusal(report); err != nil {
		cmd.Wait()
		return 0, err
	}
	close(started)
	status, err = exitStatus(cmd.Wait())
	tell(p, before)
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

// forStage leaves out what only people read: the stage starts sooner.
func forStage(p plan.Plan) plan.Plan {
	p.Carves, p.Missing, p.Options, p.Dropped, p.Seeds, p.Env, p.Repositories = nil, nil, nil, nil, nil, nil, nil
	return p
}

func stageCommand(files []*os.File) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{StageName}
	cmd.Env = []string{}
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

// descriptors opens what the stage gets, and the end of the pipe that stays.
func descriptors(text []byte) (files []*os.File, report, line *os.File, err error) {
	memory, err := sealed(text)
	if err != nil {
		return nil, nil, nil, err
	}
	exe, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("opening jail's own binary: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	files = []*os.File{memory, os.NewFile(uintptr(exe), "jail"), w, os.NewFile(uintptr(pair[1]), "line")}
	return files, r, os.NewFile(uintptr(pair[0]), "line"), nil
}

// sealed puts text on a memory file that nobody can change any more.
func sealed(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("jail", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create(2), for the plan: %w", err)
	}
	f := os.NewFile(uintptr(fd), "plan")
	if _, err := f.Write(text); err != nil {
		return nil, err
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("sealing the plan: %w", err)
	}
	return f, nil
}

// passSignals hands on what is sent to the parent alone, from the moment when
// started is closed: until then nobody is there to get it. What the terminal
// sends reaches the command by itself, since all share one process group.
func passSignals(stage *exec.Cmd) (started chan struct{}) {
	started = make(chan struct{})
	c := takeSignals()
	go func() {
		<-started
		// Through the handle: the number may be another's once it has ended.
		forward(c, func(s os.Signal) { stage.Process.Signal(s) })
	}()
	return started
}

// passed are the signals that are taken, to be passed on or dropped. One that is
// ignored (nohup) stays ignored, here and by the command.
func passed() []os.Signal {
	var out []os.Signal
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) {
			out = append(out, s)
		}
	}
	return out
}

// refusal waits until the command runs, or returns why it does not.
func refusal(report *os.File) error {
	defer report.Close()
	text, err := io.ReadAll(report)
	if err != nil || len(text) == 0 {
		return err
	}
	var p plan.Problem
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	return &p
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

// report tells the parent why nothing is started.
func report(err error) int {
	var p *plan.Problem
	if !errors.As(err, &p) {
		p = &plan.Problem{What: err.Error()}
	}
	text, _ := json.Marshal(p) // strings and numbers only
	os.NewFile(errorFD, "report").Write(text)
	return 125
}

// readOrder reads the order without moving the offset that is shared with
// others.
func readOrder() (order, error) {
	f := os.NewFile(orderFD, "plan")
	fi, err := f.Stat()
	if err != nil {
		return order{}, errors.New("this is how jail calls itself; it can't be called by hand")
	}
	text := make([]byte, fi.Size())
	if _, err := f.ReadAt(text, 0); err != nil {
		return order{}, err
	}
	var o order
	return o, json.Unmarshal(text, &o)
}
