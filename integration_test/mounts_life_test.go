package integration_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

func TestMountsExitStatus(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	for status := range 256 {
		r := testenv.Do(t, mtCommand(t, w, nil, "sh", "-c", "exit "+strconv.Itoa(status)))
		if r.Status != status || r.Stderr != "" {
			t.Errorf("exit %d: %+v", status, r)
		}
	}
	for _, sig := range []int{1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 31, 35, 64} {
		r := testenv.Do(t, mtCommand(t, w, nil, "sh", "-c", fmt.Sprintf("kill -%d $$; sleep 5", sig)))
		if r.Status != 128+sig || r.Stderr != "" {
			t.Errorf("signal %d: %+v", sig, r)
		}
	}
	if left := mtTemps(t, w); len(left) > 0 {
		t.Errorf("left on the host: %q", left)
	}
}

// What the command leaves running ends with it.
func TestMountsEndsAll(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	word := "987" + strconv.Itoa(os.Getpid())
	for _, line := range []string{
		`sleep %[1]s & exit 3`,
		`setsid -f sleep %[1]s; exit 3`,
		`(trap '' TERM HUP INT; setsid bash -c 'trap "" TERM HUP INT; sleep %[1]s; sleep %[1]s' & ); sleep 0.2; exit 3`,
		`for i in $(seq 50); do (setsid sleep %[1]s &) ; done; sleep 0.2; exit 3`,
		`(cd / ; nohup sleep %[1]s > /dev/null 2>&1 < /dev/null &); kill -STOP $(pgrep sleep) 2>/dev/null; exit 3`,
	} {
		start := time.Now()
		r := mtRun(t, w, nil, fmt.Sprintf(line, word))
		if r.Status != 3 || time.Since(start) > 4*time.Second {
			t.Errorf("%s: %+v after %v", line, r, time.Since(start))
		}
		if pids := mtPids(t, word); len(pids) > 0 {
			t.Errorf("%s: still there: %v", line, pids)
		}
	}
	// Control: without jail the daemon goes on.
	evMust(t, w, "", "bash", "-c", "setsid -f sleep "+word)
	pids := mtPids(t, word)
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	if len(pids) != 1 {
		t.Errorf("control: %v", pids)
	}
}

func TestMountsParentKilled(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	word := "986" + strconv.Itoa(os.Getpid())
	p := mtStart(t, mtCommand(t, w, nil, "bash", "-c", "setsid -f sleep "+word+"; echo ready; sleep "+word))
	p.wait(t, "ready")
	init := mtChild(t, p.Process.Pid)
	if len(mtPids(t, word)) < 3 {
		t.Errorf("only %v run", mtPids(t, word))
	}
	must(t, p.Process.Kill())
	p.Wait()
	mtWait(t, "the end of all", func() bool { return len(mtPids(t, word)) == 0 && syscall.Kill(init, 0) != nil })
	// The next start tidies up.
	mtOut(t, w, nil, "true")
	if left := mtTemps(t, w); len(left) > 0 {
		t.Errorf("left on the host: %q", left)
	}
}

func TestMountsInitKilled(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	word := "985" + strconv.Itoa(os.Getpid())
	p := mtStart(t, mtCommand(t, w, nil, "bash", "-c", "setsid -f sleep "+word+"; echo ready; sleep "+word))
	p.wait(t, "ready")
	must(t, syscall.Kill(mtChild(t, p.Process.Pid), syscall.SIGKILL))
	r := p.end(t)
	badInput{want: []string{"init"}}.checkMessage(t, r.Stderr)
	if r.Status != 125 || len(mtPids(t, word)) > 0 || len(mtTemps(t, w)) > 0 {
		t.Errorf("%+v, left: %v %v", r, mtPids(t, word), mtTemps(t, w))
	}
}

// Killed at any moment of its start, nothing is left.
func TestMountsKilledWhileStarting(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	word := "984" + strconv.Itoa(os.Getpid())
	for i := range 40 {
		p := mtStart(t, mtCommand(t, w, nil, "sleep", word))
		time.Sleep(time.Duration(i) * 500 * time.Microsecond)
		must(t, p.Process.Kill())
		p.Wait()
	}
	mtWait(t, "the end of all", func() bool { return len(mtPids(t, word)) == 0 })
}

// Asked to end at any moment of its start, it ends: no signal gets lost.
func TestMountsTerminatedWhileStarting(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	word := "983" + strconv.Itoa(os.Getpid())
	lost := 0
	for i := range 60 {
		p := mtStart(t, mtCommand(t, w, nil, "sleep", word))
		time.Sleep(time.Duration(i) * 300 * time.Microsecond)
		must(t, p.Process.Signal(syscall.SIGTERM))
		done := make(chan bool)
		go func() { p.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(2 * time.Second):
			lost++
			p.Process.Kill()
			<-done
		}
	}
	if lost > 0 {
		t.Errorf("%d of 60 signals had no effect", lost)
	}
	mtWait(t, "the end of all", func() bool { return len(mtPids(t, word)) == 0 })
	if left := mtTemps(t, w); len(left) > lost {
		mtOut(t, w, nil, "true")
		t.Errorf("%d private directories were left, %d after the next start", len(left), len(mtTemps(t, w)))
	}
}

func TestMountsNoZombies(t *testing.T) {
	mtNeed(t)
	evNeedProgram(t, "ps")
	w := testenv.NewWorld(t)
	got := mtOut(t, w, nil, `for i in $(seq 100); do (sleep 0.01 & exec true) ; (setsid -f true); done; sleep 0.5; ps -eo stat= | grep -c Z; :`)
	if got != "0\n" {
		t.Errorf("%q", got)
	}
}

func TestMountsSignalsArrive(t *testing.T) {
	mtNeed(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2} {
		t.Run(sig.String(), func(t *testing.T) {
			w := testenv.NewWorld(t)
			p := mtStart(t, mtCommand(t, w, nil, "bash", "-c", fmt.Sprintf(`trap 'echo got; n=1' %d; echo ready; until test $n; do sleep 0.02; done; sleep 0.2; exit 7`, sig)))
			p.wait(t, "ready")
			must(t, p.Process.Signal(sig))
			if r := p.end(t); r.Stdout != "ready\ngot\n" || r.Status != 7 {
				t.Errorf("%+v", r)
			}
		})
		t.Run(sig.String()+" without a trap", func(t *testing.T) {
			w := testenv.NewWorld(t)
			p := mtStart(t, mtCommand(t, w, nil, "sh", "-c", "echo ready; exec sleep 50"))
			p.wait(t, "ready")
			must(t, p.Process.Signal(sig))
			if r := p.end(t); r.Status != 128+int(sig) || r.Stderr != "" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A signal to the whole process group (timeout(1), the end of a terminal)
// reaches the command; by way of jail it may come twice.
func TestMountsGroupSignal(t *testing.T) {
	mtNeed(t)
	count := []string{"/usr/bin/python3", "-c", `
import signal, time, sys
n = 0
def got(*a):
    global n
    n += 1
for s in signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1: signal.signal(s, got)
print("ready", flush=True)
end = time.time() + 1.5
while time.time() < end: time.sleep(0.01)
print("signals:", n)`}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGUSR1} {
		for name, cmd := range map[string][]string{"control": count, "jail": append(mtJailed(t), count...)} {
			t.Run(name+" "+sig.String(), func(t *testing.T) {
				t.Parallel() // each waits for most of its time
				c := mtCommand(t, testenv.NewWorld(t), nil, "true")
				c.Path, c.Args = evLookPath(cmd[0], c.Env), cmd
				c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				p := mtStart(t, c)
				p.wait(t, "ready")
				must(t, syscall.Kill(-c.Process.Pid, sig))
				if r := p.end(t); r.Stdout == "ready\nsignals: 0\n" || !strings.HasPrefix(r.Stdout, "ready\nsignals: ") || name == "control" && !strings.HasSuffix(r.Stdout, ": 1\n") {
					t.Errorf("%+v", r)
				}
			})
		}
	}
}

func TestMountsStdin(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	big := make([]byte, 10<<20)
	rand.Read(big)
	for name, input := range map[string][]byte{"none": {}, "line": []byte("x\n"), "10 MB": big} {
		t.Run(name, func(t *testing.T) {
			cmd := mtCommand(t, w, nil, "cat")
			cmd.Stdin = bytes.NewReader(input)
			r := testenv.Do(t, cmd)
			if r.Status != 0 || r.Stderr != "" || sha256.Sum256([]byte(r.Stdout)) != sha256.Sum256(input) {
				t.Errorf("status %d, %d bytes of %d, stderr %q", r.Status, len(r.Stdout), len(input), r.Stderr)
			}
		})
	}
	line := `echo x | "$@" cat; "$@" cat < README.md; "$@" sh -c 'read a; echo $a; cat' < README.md; "$@" yes | head -n 1; echo ${PIPESTATUS[0]}; "$@" sh -c 'echo a; echo b >&2' 2>&1 | sort; x=$("$@" sh -c 'sleep 60 & echo now'); echo $x`
	want := testenv.Result{Stdout: "x\n# project\n# project\ny\n141\na\nb\nnow\n"}
	if d := cmp.Diff(want, evRun(t, w, "", nil, append([]string{"bash", "-c", line, "bash"}, mtJailed(t)...)...)); d != "" {
		t.Error(d)
	}
	line = `"$@" sh -c 'echo out' <&- 2>&-; "$@" sh -c 'echo err >&2' >&- 2>err; cat err; "$@" cat <&- 2>/dev/null; echo $?; "$@" sh -c 'ls /proc/self/fd | wc -l' 7< README.md`
	if r := evRun(t, w, "", nil, append([]string{"bash", "-c", line, "bash"}, mtJailed(t)...)...); r.Stdout != "out\nerr\n0\n4\n" {
		t.Errorf("closed descriptors: %+v", r)
	}
}

// What is inherited without jail is inherited.
func TestMountsInherited(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	line := `trap '' USR2 PIPE; umask 027; ulimit -Sn 200; nice -n 3 nohup "$@" bash -c 'grep -E "^(Sig(Blk|Ign)|Umask)" /proc/self/status; ulimit -Sn; ulimit -Hn; ulimit -Ss; nice; pwd; kill -HUP $$; echo alive' < /dev/null`
	bare := evRun(t, w, "", nil, "bash", "-c", line, "bash")
	r := evRun(t, w, "", nil, append([]string{"bash", "-c", line, "bash"}, mtJailed(t)...)...)
	if d := cmp.Diff(bare.Stdout, r.Stdout); d != "" {
		t.Errorf("bare -, jail +:\n%s\n%s", d, r.Stderr)
	}
}

// The private directories go, whatever the command did to them.
func TestMountsRemoved(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	for _, line := range []string{
		`mkdir -p /tmp/a/b/c /var/tmp/a; touch /tmp/a/b/c/f; chmod 500 /tmp/a/b /tmp/a /var/tmp/a; chmod 400 /tmp/a/b/c`,
		`mkdir /tmp/a; chmod 0 /tmp/a /tmp`,
		`ln -s / /tmp/root; ln -s "$PWD" /tmp/p; mkdir /tmp/x; ln -s .. /tmp/x/up; chmod 500 /tmp/x`,
		`d=/tmp; for i in $(seq 300); do d=$d/dddddddddd; mkdir $d && cd $d && d=. ; done`,
		`for i in $(seq 2000); do : > /tmp/$i; done; mkfifo /tmp/f`,
		`exit 9`, `kill -9 $$`,
	} {
		r := mtRun(t, w, nil, line)
		if left := mtTemps(t, w); len(left) > 0 {
			t.Errorf("%s: %+v, left %q", line, r, left)
		}
		if _, err := os.Stat(filepath.Join(w.Project, "README.md")); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

// Errors before the start are one error, and leave nothing.
func TestMountsErrors(t *testing.T) {
	mtNeed(t)
	for _, tt := range []struct {
		name   string
		setup  string // a shell line
		flags  []string
		argv   []string
		status int
	}{
		{"not found", "", nil, []string{"no-such-command"}, 127},
		{"path not found", "", nil, []string{"/no/such"}, 127},
		{"not executable", "", nil, []string{"./README.md"}, 126},
		{"artifact", "cp /bin/true x", unsealed(t), []string{"./x"}, 126},
		{"no exec rule", "", nil, []string{"../outside/x"}, 126},
		{"bad interpreter", "mkdir -p ../tools; printf '#!/no/such\\n' > ../tools/s; chmod 755 ../tools/s", []string{"--exec", "../tools"}, []string{"../tools/s"}, 127},
		{"no program", "mkdir -p ../tools; echo hello > ../tools/s; chmod 755 ../tools/s", []string{"--exec", "../tools"}, []string{"../tools/s"}, 126},
		{"loader outside", "mkdir -p ../tools; cp /bin/true ../tools/s; chmod 600 ../tools/s", []string{"--exec", "../tools"}, []string{"../tools/s"}, 126},
		{"grant absent", "", []string{"--write", "../nothing"}, []string{"true"}, 125},
		{"trees that lie in each other", "mkdir -p t", []string{"--write", "t", "--exec", "t"}, []string{"true"}, 125},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := testenv.NewWorld(t)
			must(t, copyFile(program("true"), filepath.Join(w.Outside, "x")))
			evMust(t, w, "", "bash", "-c", tt.setup+"\n:")
			before := evFiles(t, w.Home, "")
			cmd := mtCommand(t, w, tt.flags, tt.argv...)
			r := testenv.Do(t, cmd)
			if r.Status != tt.status || r.Stdout != "" {
				t.Errorf("want status %d: %+v", tt.status, r)
			}
			badInput{}.checkMessage(t, badPlain(w, r.Stderr))
			if d := cmp.Diff(before, evFiles(t, w.Home, "")); d != "" {
				t.Errorf("HOME has changed: %s", d)
			}
			if left := mtTemps(t, w); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// The working directory is in no grant: below /tmp it is not there inside, but
// that is no reason for an odd error.
func TestMountsWorkingDirectory(t *testing.T) {
	mtPlaces(t, func(t *testing.T, _ bool) {
		w := testenv.NewWorld(t)
		w.WriteFile(t, filepath.Join(w.Home, "rules.toml"), "profiles = []\n[files]\nexec = [\"/usr\", \"/bin\", \"/lib\", \"/lib64\"]\n")
		r := evRun(t, w, "outside", nil, append(mtJailed(t, "--rules", filepath.Join(w.Home, "rules.toml")), "/bin/sh", "-c", "echo started")...)
		if r.Status == 0 && r.Stdout == "started\n" && r.Stderr == "" {
			return
		}
		badInput{}.checkMessage(t, badPlain(w, r.Stderr))
		if r.Status != 125 {
			t.Errorf("%+v", r)
		}
	})
}

func TestMountsNested(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	bin := testenv.JailBin(t)
	outer := mtJailed(t, "--exec", bin)
	r := evRun(t, w, "", nil, append(append(outer, mtJailed(t)...), "true")...)
	badInput{want: []string{"--waive mounts"}}.checkMessage(t, badPlain(w, r.Stderr))
	if r.Status != 125 || r.Stdout != "" {
		t.Errorf("without the waiver: %+v", r)
	}
	t.Logf("without the waiver:\n%s", r.Stderr)
	line := `echo x > made; cat made; echo $TMPDIR; echo x > $TMPDIR/f; cat ../outside/keep; cp /bin/true x; ./x; ps -e | grep -c jail; echo x >> .git/config`
	r = evRun(t, w, "", nil, append(append(outer, evJailed(t)...), "bash", "-c", line)...)
	if !strings.HasPrefix(r.Stdout, "x\n/tmp/jail-tmp-") || strings.Count(r.Stderr, "\n") != 3 || !strings.Contains(r.Stderr, ".git/config: Read-only") {
		t.Errorf("with the waiver: %+v", r)
	}
	// The other way round a jail with mounts can't be made either.
	r = evRun(t, w, "", nil, append(append(evJailed(t, "--exec", bin), mtJailed(t)...), "true")...)
	badInput{want: []string{"--waive mounts"}}.checkMessage(t, badPlain(w, r.Stderr))
}

// Several jails at once, in one project.
func TestMountsSideBySide(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	var all []*mtProcess
	for i := range 8 {
		all = append(all, mtStart(t, mtCommand(t, w, nil, "sh", "-c", fmt.Sprintf("echo %d > /tmp/f; sleep 0.5; cat /tmp/f; ls /tmp | wc -l; pgrep -c sh; echo %d > f%d", i, i, i))))
	}
	for i, p := range all {
		r := p.end(t)
		if !strings.HasPrefix(r.Stdout, fmt.Sprintf("%d\n", i)) || r.Stderr != "" {
			t.Errorf("%+v", r)
		}
	}
	if left := mtTemps(t, w); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
