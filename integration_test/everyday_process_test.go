package integration_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

// evCmd is a command in the jail, in the project, that is not yet started.
func evCmd(t testing.TB, w *testenv.World, argv ...string) *exec.Cmd {
	t.Helper()
	line := append(evJailed(t), argv...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.Project, evEnv(w), 10*time.Second
	return cmd
}

func TestEverydayExitStatus(t *testing.T) {
	w := testenv.NewWorld(t)
	for status := range 256 {
		if r := testenv.Do(t, evCmd(t, w, "sh", "-c", "exit "+strconv.Itoa(status))); r.Status != status || r.Stderr != "" {
			t.Errorf("exit %d: status %d, stderr %q", status, r.Status, r.Stderr)
		}
	}
}

// A parent that asks the kernel how the command ended hears of the signal.
func TestEverydayDeathBySignal(t *testing.T) {
	w := testenv.NewWorld(t)
	for _, sig := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGKILL, syscall.SIGUSR1,
		syscall.SIGSEGV, syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGTERM, 35,
	} {
		cmd := evCmd(t, w, "sh", "-c", fmt.Sprintf("kill -%d $$", sig))
		_ = cmd.Run() // the state says more
		ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || !ws.Signaled() || ws.Signal() != sig {
			t.Errorf("signal %d: %v", sig, cmd.ProcessState)
		}
	}
}

func TestEverydayStdin(t *testing.T) {
	w := testenv.NewWorld(t)
	big := make([]byte, 10<<20)
	rand.Read(big)
	for name, input := range map[string][]byte{"none": {}, "line": []byte("x\n"), "10 MB": big} {
		t.Run(name, func(t *testing.T) {
			cmd := evCmd(t, w, "cat")
			cmd.Stdin = bytes.NewReader(input)
			r := testenv.Do(t, cmd)
			if r.Status != 0 || r.Stderr != "" || sha256.Sum256([]byte(r.Stdout)) != sha256.Sum256(input) {
				t.Errorf("status %d, %d bytes of %d, stderr %q", r.Status, len(r.Stdout), len(input), r.Stderr)
			}
		})
	}
	t.Run("shell", func(t *testing.T) {
		line := `echo x | "$@" cat; "$@" cat < README.md; "$@" sh -c 'read a; echo $a; cat' < README.md; "$@" yes | head -n 1; echo ${PIPESTATUS[0]}`
		want := "x\n# project\n# project\ny\n141\n"
		r := evRun(t, w, "", nil, append([]string{"bash", "-c", line, "bash"}, evJailed(t)...)...)
		if d := cmp.Diff(testenv.Result{Stdout: want}, r); d != "" {
			t.Error(d)
		}
	})
}

// A program sees its words as they were written.
func TestEverydayArguments(t *testing.T) {
	w := testenv.NewWorld(t)
	many := make([]string, 1000)
	for i := range many {
		many[i] = strings.Repeat("x", i%100)
	}
	for _, tt := range []struct {
		name    string
		program string
		args    []string
	}{
		{"none", "sh", nil},
		{"empty", "sh", []string{"", "a", "", ""}},
		{"flags", "sh", []string{"--", "-v", "--waive", "nothing", "--help"}},
		{"odd", "sh", []string{"sp ace", "new\nline", "quo\"te'", "\x80\xff", "ü", "*", "$HOME", "\\"}},
		{"many", "sh", many},
		{"path", "/bin/sh", []string{"a"}},
		{"dots", "../../../../../../../../../../bin/./sh", []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			argv := append([]string{tt.program, "-c", `cat "/proc/$$/cmdline"; :`, "name"}, tt.args...)
			want := testenv.Result{Stdout: strings.Join(argv, "\x00") + "\x00"}
			if d := cmp.Diff(want, testenv.Do(t, evCmd(t, w, argv...))); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(want, evRun(t, w, "", nil, argv...)); d != "" {
				t.Errorf("control: %s", d)
			}
		})
	}
}

// The command is the very process that was started as jail.
func TestEverydayPid(t *testing.T) {
	w := testenv.NewWorld(t)
	cmd := evCmd(t, w, "sh", "-c", "echo $$ $PPID")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d %d\n", cmd.Process.Pid, os.Getpid()); out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestEverydaySignalsArrive(t *testing.T) {
	for _, name := range []string{"TERM", "INT", "HUP", "USR1", "USR2", "WINCH", "CONT"} {
		t.Run(name, func(t *testing.T) {
			w := testenv.NewWorld(t)
			script := fmt.Sprintf(`trap 'echo got; exit 7' %s; echo ready; while :; do sleep 0.02; done`, name)
			cmd := evCmd(t, w, "bash", "-c", script)
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }).Stop()
			lines := bufio.NewScanner(pipe)
			lines.Scan()
			evMust(t, w, "", "kill", "-"+name, strconv.Itoa(cmd.Process.Pid))
			lines.Scan()
			got := lines.Text()
			_ = cmd.Wait() // the state says more
			if got != "got" || cmd.ProcessState.ExitCode() != 7 {
				t.Errorf("said %q, ended with %v", got, cmd.ProcessState)
			}
		})
	}
}

// What a process hands down to its command is handed down through jail: ignored
// and blocked signals, limits, umask, priority, the working directory.
func TestEverydayInherited(t *testing.T) {
	evJob{
		want: "SigIgn:",
		steps: [][]string{{
			"bash", "-c", `grep -E '^(Sig(Blk|Ign)|Umask)' /proc/self/status; ulimit -Sn; ulimit -Hn; ulimit -Ss; nice
			cat /proc/self/oom_score_adj /proc/self/timerslack_ns; pwd; echo $PWD; readlink /proc/$$/cwd; ps -o pgid= -p $$ | wc -l; umask`,
		}},
	}.run(t)

	w := testenv.NewWorld(t)
	line := `umask 027; ulimit -Sn 200; nice -n 3 nohup "$@" sh -c 'kill -HUP $$; nice; umask; ulimit -Sn; cat <&7; echo alive' 7< README.md`
	bare := evRun(t, w, "", nil, "bash", "-c", line, "bash")
	r := evRun(t, w, "", nil, append([]string{"bash", "-c", line, "bash"}, evJailed(t)...)...)
	// Descriptors above 2 carry rights of the outside, and are closed.
	if want := strings.Replace(bare.Stdout, "# project\n", "", 1); want == bare.Stdout || r.Stdout != want {
		t.Errorf("got %q, bare %q, stderr %q", r.Stdout, bare.Stdout, r.Stderr)
	}
}

// Standard descriptors may be closed; jail's own files must not take their place.
func TestEverydayClosedDescriptors(t *testing.T) {
	w := testenv.NewWorld(t)
	line := `"$@" sh -c 'echo out' <&- 2>&-; "$@" sh -c 'echo err >&2' >&- 2>err; cat err; "$@" cat <&- 2>/dev/null; echo $?`
	r := evRun(t, w, "", nil, append([]string{"bash", "-c", line, "bash"}, evJailed(t)...)...)
	if r.Stdout != "out\nerr\n0\n" {
		t.Errorf("got %+v", r)
	}
}

// A program in the project does not come before the system's of that name.
func TestEverydayPlantedCommand(t *testing.T) {
	w := testenv.NewWorld(t)
	fake := filepath.Join(w.Project, "head")
	w.WriteFile(t, fake, "#!/bin/sh\necho fake\n")
	evChmod(t, fake, 0o755)
	for _, first := range []string{".", "", w.Project} {
		env := []string{"PATH=" + first + ":" + evPath()}
		r := evRun(t, w, "", env, append(evJailed(t), "head", "-n", "1", "README.md")...)
		want := testenv.Result{Stdout: "# project\n", Stderr: "jail: note: " + fake + " is passed over: the jail may write it\n"}
		if r != want {
			t.Errorf("PATH starts with %q: %s", first, cmp.Diff(want, r))
		}
	}
}

// Without a pid namespace a background child goes on after the command.
func TestEverydayBackground(t *testing.T) {
	w := testenv.NewWorld(t)
	r := testenv.Do(t, evCmd(t, w, "sh", "-c", "(sleep 0.3; echo late > late) < /dev/null > /dev/null 2>&1 &"))
	late := filepath.Join(w.Project, "late")
	if _, err := os.Stat(late); r.Status != 0 || err == nil {
		t.Fatalf("status %d, stderr %q; the command waited for its child: %v", r.Status, r.Stderr, err == nil)
	}
	for range 100 {
		if text, _ := os.ReadFile(late); string(text) == "late\n" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the child did not go on")
}
