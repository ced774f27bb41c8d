package launch

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// stage is the parent's end of process 1.
type stage struct {
	cmd      *exec.Cmd
	order    *os.File // a memory file, still empty
	report   *os.File // a pipe
	line     *os.File // a socket
	hand     *os.File // a socket that descriptors come from
	signals  <-chan os.Signal
	terminal terminal
}

// startStage makes the namespaces and starts process 1 in them, which waits for
// its order.
func startStage(p plan.Plan, stdout *os.File) (*stage, error) {
	s := new(stage)
	files, err := s.descriptors()
	if err != nil {
		return nil, err
	}
	// The kernel ends the stage when this thread ends.
	runtime.LockOSThread()
	s.cmd = stageCommand(files)
	s.cmd.Stdout = cmp.Or(stdout, os.Stdout)
	s.signals = takeSignals()
	s.terminal = foreground()
	if err := s.cmd.Start(); err != nil {
		return nil, p.WithoutMounts(plan.Cause(err))
	}
	for _, f := range files[1:] {
		f.Close()
	}
	return s, nil
}

// run gives the stage its order and waits for its end.
func (s *stage) run(p plan.Plan, o order, seals *seals) (status int, err error) {
	ignoreStops()
	if err := o.write(s.order); err != nil {
		return 0, err
	}
	if _, err := s.line.Write([]byte{ordered}); err != nil {
		return 0, err
	}
	go stopAlong(s.line)
	go passSignals(s.signals, s.line)
	if seals != nil {
		served := make(chan struct{})
		go func() {
			defer close(served)
			s.supervise(seals)
		}()
		// What is being sealed is sealed to the end: its journal is closed later.
		defer func() { <-served }()
	}
	if err := refused(p, s.report); err != nil {
		return 0, err
	}
	return exitStatus(s.cmd.Wait())
}

// supervise takes the descriptors and answers the jail's calls. If that can't go
// on, the listener is closed, and what would have been asked fails.
func (s *stage) supervise(seals *seals) {
	ruleset, err := s.take()
	if err != nil {
		return // the stage says why it has ended
	}
	defer ruleset.Close()
	listener, err := s.take()
	if err != nil {
		return
	}
	// main has turned collecting off for the start; this may go on for days.
	debug.SetGCPercent(100)
	if err := seals.serve(s.cmd.Process.Pid, listener, ruleset); err != nil {
		fmt.Fprintf(os.Stderr, "jail: warning: nothing can be executed any more in this jail: %v\n", err)
	}
}

// take receives a descriptor.
func (s *stage) take() (*os.File, error) {
	space := make([]byte, unix.CmsgSpace(4))
	n, size, _, _, err := unix.Recvmsg(int(s.hand.Fd()), make([]byte, 1), space, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n != 1 {
		return nil, cmp.Or(err, io.EOF)
	}
	messages, err := unix.ParseSocketControlMessage(space[:size])
	if err != nil || len(messages) != 1 {
		return nil, cmp.Or(err, io.EOF)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, cmp.Or(err, io.EOF)
	}
	return os.NewFile(uintptr(fds[0]), "from the jail"), nil
}

// close ends a stage that is still there, which is one that has started nothing:
// it reads the end of the line.
func (s *stage) close() {
	s.line.Close()
	s.order.Close()
	s.hand.Close()
	if s.cmd.ProcessState == nil {
		s.cmd.Wait()
	}
	s.terminal.restore()
}

func stageCommand(files []*os.File) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{StageName}
	cmd.Env = []string{"TZ="} // or package time reads the zone at each start
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
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

// descriptors opens what the stage gets, in the order of their numbers, and the
// ends that stay.
func (s *stage) descriptors() (files []*os.File, err error) {
	if s.order, err = memory(); err != nil {
		return nil, err
	}
	var report *os.File
	if s.report, report, err = os.Pipe(); err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	s.line = os.NewFile(uintptr(pair[0]), "line")
	hand, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	s.hand = os.NewFile(uintptr(hand[0]), "hand")
	return []*os.File{s.order, report, os.NewFile(uintptr(pair[1]), "line"), os.NewFile(uintptr(hand[1]), "hand")}, nil
}
