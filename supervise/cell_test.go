package supervise

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jail/confine"
	"jail/internal/testenv"
	"jail/seccomp"
)

// cell is as much of a jail as the supervisor has to do with: a mount namespace
// with a noexec file system at work, and a filter that notifies.
type cell struct {
	t       testing.TB
	work    string // noexec inside, writable
	runs    string // executable
	notify  seccomp.Notified
	Options Options
	env     []string
	old     bool // the supervisor takes the kernel for an old one

	mu    sync.Mutex
	seals map[string]string
	told  bytes.Buffer
}

const cellName = "cell of a test"

// inside is what the child of a test does.
type inside struct {
	Work   string
	Argv   []string
	Notify seccomp.Notified
}

func TestMain(m *testing.M) {
	if os.Args[0] == cellName {
		err := enter()
		fmt.Fprintln(os.Stderr, "cell:", err)
		os.Exit(99)
	}
	os.Exit(m.Run())
}

func enter() error {
	var in inside
	if err := json.Unmarshal([]byte(os.Getenv("CELL")), &in); err != nil {
		return err
	}
	os.Unsetenv("CELL")
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	if err := unix.Mount("tmpfs", in.Work, "tmpfs", unix.MS_NOEXEC|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("tmpfs: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("proc: %w", err)
	}
	if err := os.Chdir(in.Work); err != nil {
		return err
	}
	prog, err := seccomp.Program(in.Notify.Rules())
	if err != nil {
		return err
	}
	path, err := exec.LookPath(in.Argv[0])
	if err != nil {
		path = in.Argv[0]
	}
	return confine.Steps{Ruleset: -1, Filter: prog, Listener: 3, Path: path, Argv: in.Argv, Env: os.Environ()}.Exec()
}

func newCell(t testing.TB) *cell {
	t.Helper()
	c := &cell{t: t, work: t.TempDir(), runs: filepath.Join(t.TempDir(), "runs"), seals: map[string]string{}}
	if err := os.Mkdir(c.runs, 0o755); err != nil {
		t.Fatal(err)
	}
	c.notify = seccomp.Notified{Exec: true, Libraries: true, Connect: true}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(c.runs, "runner")
	if err := os.WriteFile(name, self, 0o555); err != nil {
		t.Fatal(err)
	}
	runner, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { runner.Close() })
	if err := os.Chmod(name, 0o111); err != nil {
		t.Fatal(err)
	}
	c.Options = Options{
		Runner: func() (*os.File, error) { return runner, nil }, Runs: c.runs, Program: c.seal, Library: c.seal, Original: func(string) (string, bool) { return "", false },
		Writable: func(path string) bool { return path == c.work || strings.HasPrefix(path, c.work+"/") },
		Tell:     func(line string) { c.mu.Lock(); defer c.mu.Unlock(); fmt.Fprintln(&c.told, line) },
	}
	return c
}

// seal copies, and remembers by inode.
func (c *cell) seal(r Request) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(r.File.Fd()), &st); err != nil {
		return "", err
	}
	key := fmt.Sprint(st.Dev, st.Ino, st.Ctim)
	c.mu.Lock()
	defer c.mu.Unlock()
	if path, ok := c.seals[key]; ok {
		return path, nil
	}
	dir := filepath.Join(c.runs, fmt.Sprint(len(c.seals)))
	path := filepath.Join(dir, filepath.Base(r.Path))
	text, err := io.ReadAll(r.File)
	err = errors.Join(err, os.Mkdir(dir, 0o755), os.WriteFile(path, text, 0o555))
	c.seals[key] = path
	return path, err
}

// start runs a command in the cell; wait for it with its Wait.
func (c *cell) command(argv ...string) *exec.Cmd {
	c.t.Helper()
	// The child of this process is not redirected itself: os/exec waits for it,
	// and a wait by the tracer's own process gets the stops as well.
	argv = append([]string{"sh", "-c", `"$@"; exit $?`, "sh"}, argv...)
	text, _ := json.Marshal(inside{Work: c.work, Argv: argv, Notify: c.notify})
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{cellName}
	cmd.Env = append(os.Environ(), "CELL="+string(text), "HOME="+c.work, "GOCACHE="+c.work+"/gocache", "WORK="+c.work, "TMPDIR="+c.work)
	cmd.Env = append(cmd.Env, c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
	return cmd
}

// serve starts a command and supervises it until it has ended.
func (c *cell) serve(cmd *exec.Cmd) (ended chan error) {
	c.t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	cmd.ExtraFiles = []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		testenv.Need(c.t, "userns", err)
	}
	theirs.Close()
	buf, oob := make([]byte, 1), make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(pair[0], buf, oob, unix.MSG_CMSG_CLOEXEC)
	unix.Close(pair[0])
	if err != nil || n == 0 {
		cmd.Wait()
		c.t.Fatalf("no listener came: %v", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil {
		c.t.Fatal(err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		c.t.Fatal(err)
	}
	ended = make(chan error, 1)
	l := seccomp.NewListener(os.NewFile(uintptr(fds[0]), "listener"))
	go func() {
		if c.old {
			passForOld(c.t)
		}
		err := Serve(l, c.Options)
		l.Close()
		ended <- err
	}()
	return ended
}

// passForOld makes the kernel call itself 2.6 to this goroutine, whose thread ends with it.
func passForOld(t testing.TB) {
	const uname26 = 0x20000
	runtime.LockOSThread()
	if _, _, e := unix.Syscall(unix.SYS_PERSONALITY, uname26, 0, 0); e != 0 || noticesEnd() {
		t.Errorf("the kernel does not pass for an old one: %v", e)
	}
}

// run runs a command to its end.
func (c *cell) run(argv ...string) testenv.Result {
	c.t.Helper()
	cmd := c.command(argv...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	ended := c.serve(cmd)
	timer := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	_ = cmd.Wait()
	if !timer.Stop() {
		c.t.Fatalf("%q did not end; so far:\n%s%s", argv, stdout.String(), stderr.String())
	}
	if err := <-ended; err != nil {
		c.t.Fatalf("the supervisor ended: %v", err)
	}
	status := cmd.ProcessState.ExitCode()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		status = 128 + int(ws.Signal())
	}
	return testenv.Result{Stdout: stdout.String(), Stderr: stderr.String(), Status: status}
}

// shell runs lines of shell.
func (c *cell) shell(lines ...string) testenv.Result {
	c.t.Helper()
	return c.run("bash", "-c", strings.Join(lines, "\n"))
}

// want fails the test unless a command ended well with this output.
func (c *cell) want(r testenv.Result, stdout string) {
	c.t.Helper()
	if r.Status != 0 || r.Stdout != stdout {
		c.t.Fatalf("status %d\nstdout %q\nwanted %q\nstderr %s\ntold %s", r.Status, r.Stdout, stdout, r.Stderr, c.told.String())
	}
}
