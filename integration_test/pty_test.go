package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jail/internal/testenv"
)

// A ptyRun is a program on a terminal of its own, typed to and read from.
type ptyRun struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd

	mu   sync.Mutex
	seen strings.Builder
	from int // what was expected so far ends here
}

// ptyStart starts a command as leader of a session with a new terminal.
func ptyStart(t *testing.T, w *testenv.World, argv ...string) *ptyRun {
	t.Helper()
	master, slave := ptyOpen(t)
	env := evEnv(w, "TERM=xterm", "PS1=prompt> ", "HISTFILE=", "INPUTRC=/dev/null")
	p := &ptyRun{t: t, master: master, cmd: &exec.Cmd{
		Path: evLookPath(argv[0], env), Args: argv, Dir: w.Project, Env: env,
		Stdin: slave, Stdout: slave, Stderr: slave,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true},
	}}
	err := p.cmd.Start()
	slave.Close()
	if err != nil {
		t.Fatal(err)
	}
	go p.read()
	t.Cleanup(func() {
		unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL)
		p.cmd.Process.Kill()
		p.cmd.Wait()
		master.Close()
		if t.Failed() {
			t.Logf("the terminal shows:\n%q", p.text())
		}
	})
	return p
}

// ptyModes plays a script in a jail without the mounts layer, in one with it, where
// a parent and process 1 stand between the terminal and the command, and in one that
// traces the command besides.
func ptyModes(t *testing.T, script func(t *testing.T, jail []string)) {
	t.Helper()
	t.Run("waived", func(t *testing.T) { script(t, evJailed(t)) })
	t.Run("mounts", func(t *testing.T) {
		mtNeed(t)
		script(t, mtJailed(t))
	})
	t.Run("traced", func(t *testing.T) {
		mtNeed(t)
		script(t, []string{testenv.JailBin(t), "why", "--"})
	})
}

// ptyShell starts an interactive bash, bare; lines typed to it find jail in $J.
func ptyShell(t *testing.T, jail []string) *ptyRun {
	t.Helper()
	w := testenv.NewWorld(t)
	p := ptyStart(t, w, "bash", "--norc", "--noprofile", "--noediting", "-i")
	p.expect(`prompt> `)
	p.line("J='" + strings.Join(jail, " ") + "'")
	p.expect(`prompt> `)
	return p
}

func ptyOpen(t *testing.T) (master, slave *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	testenv.Need(t, "ptmx", err)
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	ptySize(t, master, 24, 80)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

func ptySize(t *testing.T, master *os.File, rows, cols uint16) {
	t.Helper()
	conn, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Control(func(fd uintptr) {
		if err := unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (p *ptyRun) read() {
	buf := make([]byte, 4096)
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.mu.Unlock()
		if err != nil { // EIO: nobody has the terminal open any more
			return
		}
	}
}

func (p *ptyRun) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

// keys types as it stands, line types a line.
func (p *ptyRun) keys(s string) {
	p.t.Helper()
	if _, err := p.master.WriteString(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *ptyRun) line(s string) {
	p.t.Helper()
	p.keys(s + "\n")
}

// expect waits until new output matches and returns the submatches.
func (p *ptyRun) expect(pattern string) []string {
	p.t.Helper()
	return p.expectWithin(20*time.Second, pattern)
}

func (p *ptyRun) expectWithin(limit time.Duration, pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		text := p.text()[p.from:]
		if m := re.FindStringSubmatchIndex(text); m != nil {
			found := re.FindStringSubmatch(text)
			p.from += m[1]
			return found
		}
	}
	p.t.Fatalf("%q did not come, but %q", pattern, p.text()[p.from:])
	return nil
}

// end waits for the program and checks its exit status.
func (p *ptyRun) end(want int) {
	p.t.Helper()
	timer := time.AfterFunc(20*time.Second, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	_ = p.cmd.Wait() // the state says more
	if got := p.cmd.ProcessState.ExitCode(); got != want {
		p.t.Errorf("ended with %v, want %d", p.cmd.ProcessState, want)
	}
}
