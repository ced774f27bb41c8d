package testenv

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// World is a home with a project in it and things that a jail must not reach.
type World struct {
	Home       string
	Project    string // a git repository with one commit
	Outside    string // a directory beside the project, with a file "keep"
	Secret     string // a file outside of every grant
	SecretText string // its content, random
	Temp       string // TMPDIR of everything that runs here
}

// NewWorld makes a world that is removed at the end of the test.
func NewWorld(t testing.TB) *World {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	secret := make([]byte, 12)
	rand.Read(secret)
	w := &World{
		Home: filepath.Join(base, "home"), Temp: filepath.Join(base, "tmp"),
		SecretText: "secret-" + hex.EncodeToString(secret),
	}
	w.Project, w.Outside = filepath.Join(w.Home, "project"), filepath.Join(w.Home, "outside")
	w.Secret = filepath.Join(w.Home, ".ssh", "id_test")
	for _, dir := range []string{w.Temp, w.Project, w.Outside, filepath.Dir(w.Secret)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.WriteFile(t, w.Secret, w.SecretText+"\n")
	w.WriteFile(t, filepath.Join(w.Outside, "keep"), "keep\n")
	w.WriteFile(t, filepath.Join(w.Home, ".gitconfig"), "[user]\n\tname = Test\n\temail = test@example.org\n[init]\n\tdefaultBranch = main\n")
	w.WriteFile(t, filepath.Join(w.Project, "README.md"), "# project\n")
	w.Git(t, "init", "-q")
	w.Git(t, "add", "-A")
	w.Git(t, "commit", "-qm", "first")
	return w
}

// WriteFile writes a file or ends the test.
func (w *World) WriteFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Git runs git in the project, outside of any jail, and returns its output.
func (w *World) Git(t testing.TB, args ...string) string {
	t.Helper()
	r := w.Run(t, append([]string{"git"}, args...)...)
	if r.Status != 0 {
		t.Fatalf("git %v: %s", args, r.Stderr)
	}
	return strings.TrimSpace(r.Stdout)
}

// Env is a clean environment for programs in this world.
func (w *World) Env() []string {
	return []string{
		"HOME=" + w.Home, "USER=" + os.Getenv("USER"), "LANG=C.UTF-8", "TERM=dumb", "TMPDIR=" + w.Temp,
		"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1",
	}
}

// Result is how a command ended.
type Result struct {
	Stdout, Stderr string
	Status         int // 128+n after signal n, as jail reports it
}

// Run runs a command bare, in the project, as a control.
func (w *World) Run(t testing.TB, argv ...string) Result {
	t.Helper()
	return w.RunIn(t, w.Project, w.Env(), argv...)
}

// Jail runs `jail --waive mounts` with more words in the project.
func (w *World) Jail(t testing.TB, args ...string) Result {
	t.Helper()
	return w.Run(t, append([]string{JailBin(t), "--waive", "mounts"}, args...)...)
}

// RunIn runs a command with a working directory and environment. What lasts
// longer than five minutes fails the test.
func (w *World) RunIn(t testing.TB, dir string, env []string, argv ...string) Result {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	return Do(t, cmd)
}

// Do runs a prepared command and collects what it says.
func Do(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	timer := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	if !timer.Stop() {
		t.Fatalf("%v did not end; so far:\n%s%s", cmd.Args, stdout.String(), stderr.String())
	}
	r := Result{Stdout: stdout.String(), Stderr: stderr.String(), Status: cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	if r.Status < 0 {
		r.Status = 128 + int(signal(cmd))
	}
	return r
}
