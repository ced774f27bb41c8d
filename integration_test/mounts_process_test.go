package integration_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jail/internal/testenv"
)

// mtCommand is a command in a jail, in the project, that is not yet started.
func mtCommand(t testing.TB, w *testenv.World, flags []string, argv ...string) *exec.Cmd {
	t.Helper()
	line := append(mtJailed(t, flags...), argv...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.Project, evEnv(w), 10*time.Second
	return cmd
}

// An mtProcess is a jail that runs beside the test.
type mtProcess struct {
	*exec.Cmd
	out, err mtBuffer
}

type mtBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *mtBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *mtBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var _ io.Writer = (*mtBuffer)(nil)

func mtStart(t *testing.T, cmd *exec.Cmd) *mtProcess {
	t.Helper()
	p := &mtProcess{Cmd: cmd}
	cmd.Stdout, cmd.Stderr = &p.out, &p.err
	must(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return p
}

// wait waits for a word on standard output.
func (p *mtProcess) wait(t *testing.T, word string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(p.out.String(), word) {
			return
		}
	}
	t.Fatalf("%q did not come: %q, %q", word, p.out.String(), p.err.String())
}

// end waits for the end, 20 seconds at most.
func (p *mtProcess) end(t *testing.T) testenv.Result {
	t.Helper()
	timer := time.AfterFunc(20*time.Second, func() { p.Process.Kill() })
	_ = p.Wait() // the state says more
	if !timer.Stop() {
		t.Errorf("did not end: %q, %q", p.out.String(), p.err.String())
	}
	r := testenv.Result{Stdout: p.out.String(), Stderr: p.err.String(), Status: p.ProcessState.ExitCode()}
	if ws, ok := p.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.Status = 128 + int(ws.Signal())
	}
	return r
}

// mtPids lists the host's processes whose command line has the word.
func mtPids(t *testing.T, word string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	var pids []int
	for _, f := range files {
		text, _ := os.ReadFile(f)
		var pid int
		if _, err := fmt.Sscanf(f, "/proc/%d/", &pid); err == nil && bytes.Contains(text, []byte(word)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// mtChild is the only child of a process: of a jail's parent, its init.
func mtChild(t *testing.T, pid int) int {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		var child int
		if _, err := fmt.Sscan(string(text), &child); err == nil {
			return child
		}
	}
	t.Fatalf("process %d has no child", pid)
	return 0
}

// mtTemps lists the private directories on the host.
func mtTemps(t *testing.T, w *testenv.World) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(w.Temp, "jail-tmp-*"))
	must(t, err)
	return dirs
}

// Arguments, variables and paths are bytes: none is changed on its way in.
func TestMountsBytes(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	const odd = "\xff\xfe a\nb"
	must(t, os.Mkdir(filepath.Join(w.Project, odd), 0o755))
	for _, flags := range [][]string{{"--env", "ODD"}, {"--env", "ODD", "--waive", "mounts"}} {
		cmd := mtCommand(t, w, flags, "sh", "-c", `printf '%s|' "$1" "$ODD"; cd "$1" && echo > file && echo "${PWD##*/project/}"`, "sh", odd)
		cmd.Env = append(cmd.Env, "ODD="+odd)
		want := odd + "|" + odd + "|" + odd + "\n"
		if r := testenv.Do(t, cmd); r.Stdout != want || r.Status != 0 {
			t.Errorf("%q: want %q, got %q, %d: %s", flags, want, r.Stdout, r.Status, r.Stderr)
		}
	}
	// The project itself, and what is granted and hidden in it.
	cmd := mtCommand(t, w, []string{"--hide", ".env"}, "sh", "-c", "echo > file; cat .env; echo end")
	cmd.Dir = filepath.Join(w.Project, odd)
	w.WriteFile(t, filepath.Join(cmd.Dir, ".env"), "secret")
	w.Git(t, "init", "-q", cmd.Dir)
	if r := testenv.Do(t, cmd); r.Stdout != "end\n" || r.Status != 0 {
		t.Errorf("%q, %d: %s", r.Stdout, r.Status, r.Stderr)
	}
}
