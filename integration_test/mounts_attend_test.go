package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jail/internal/testenv"
)

// With --keep-running jail waits for what the command leaves, and returns the
// command's status.
func TestMountsKeepRunning(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	daemon := `setsid sh -c 'sleep 0.3; echo written > late'; exit 7`
	if r := mtRun(t, w, nil, "("+daemon+") & exit 7"); r.Status != 7 {
		t.Errorf("control: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(w.Project, "late")); err == nil {
		t.Error("control: without the flag the daemon went on")
	}
	if r := mtRun(t, w, []string{"--keep-running"}, "("+daemon+") & exit 7"); r.Status != 7 || r.Stderr != "" {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(w.Project, "late")); err != nil {
		t.Errorf("the daemon was ended: %v", err)
	}
}

// Killing the parent ends all, whatever flags it has.
func TestMountsKeepRunningParentKilled(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	p := mtStart(t, mtCommand(t, w, []string{"--keep-running"}, "sh", "-c", "setsid -f sleep 98211; echo started"))
	p.wait(t, "started")
	mtWait(t, "the daemon", func() bool { return len(mtPids(t, "98211")) >= 2 })
	must(t, p.Process.Kill())
	p.Wait()
	mtWait(t, "the daemon's end", func() bool { return len(mtPids(t, "98211")) == 0 })
}

// What is left gets the signals that the command would have got.
func TestMountsKeepRunningSignal(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	daemon := `trap 'echo told; exit' TERM; while kill -0 $0 2>/dev/null; do sleep 0.02; done; echo alone; while :; do sleep 0.02; done`
	p := mtStart(t, mtCommand(t, w, []string{"--keep-running"}, "bash", "-c", `setsid bash -c "$0" $$ & exit 7`, daemon))
	p.wait(t, "alone")
	must(t, p.Process.Signal(syscall.SIGTERM))
	if r := p.end(t); r.Status != 7 || r.Stdout != "alone\ntold\n" { // bash may say that its sleep was terminated
		t.Errorf("%+v", r)
	}
}

// What is left may have been stopped.
func TestMountsKeepRunningStopped(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	daemon := `echo stopping; kill -STOP $$; echo went on`
	p := mtStart(t, mtCommand(t, w, []string{"--keep-running"}, "sh", "-c", `setsid sh -c "$0" & exit 7`, daemon))
	p.wait(t, "stopping")
	mtWait(t, "its stop", func() bool {
		for _, pid := range mtPids(t, daemon) {
			if state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && strings.Contains(string(state), ") T ") {
				return true
			}
		}
		return false
	})
	must(t, p.Process.Signal(syscall.SIGTERM))
	if r := p.end(t); r.Status != 7 || r.Stdout != "stopping\n" {
		t.Errorf("%+v", r)
	}
}

// Where no shell waits for its jobs, a command that stops may be continued or ended by
// what it has started.
func TestMountsContinuedInside(t *testing.T) {
	mtNeed(t)
	for line, want := range map[string]int{
		`(until grep -q "T (stopped)" /proc/$$/status; do :; done; kill -CONT $$) & kill -STOP $$; exit 5`: 5,
		`(until grep -q "T (stopped)" /proc/$$/status; do :; done; kill -KILL $$) & kill -STOP $$; exit 5`: 128 + 9,
	} {
		w := testenv.NewWorld(t)
		control := exec.Command("sh", "-c", line)
		control.Run()
		if ws := control.ProcessState.Sys().(syscall.WaitStatus); ws.ExitStatus() != want && 128+int(ws.Signal()) != want {
			t.Errorf("control: %v", control.ProcessState)
		}
		cmd := mtCommand(t, w, nil, "sh", "-c", line)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if r := mtStart(t, cmd).end(t); r.Status != want {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

func TestMountsTellsHowManyWereEnded(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	line := "setsid -f sleep 98212; setsid -f sleep 98212; exit 0"
	r := mtRun(t, w, []string{"-v"}, line)
	if r.Status != 0 || !strings.Contains(r.Stderr, "jail: 2 left running, ended now") {
		t.Errorf("%+v", r)
	}
	if r := mtRun(t, w, []string{"-v"}, "true"); strings.Contains(r.Stderr, "left running") {
		t.Errorf("nothing was left: %+v", r)
	}
	if r := mtRun(t, w, nil, line); r.Stderr != "" {
		t.Errorf("without -v: %+v", r)
	}
}

// counts is a command that says how often a signal came, in a group of its own
// or in jail's.
const counts = `trap 'n=$((n+1))' TERM USR1; n=0; echo started; for i in $(seq 20); do sleep 0.02; done; echo came $n`

// A signal comes once, whether it is sent to jail alone or to its whole process
// group, and whether the command has stayed in that group or not.
func TestMountsSignalOnce(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGUSR1} {
		for name, argv := range map[string][]string{
			"in the group": {"bash", "-c", counts},
			"in its own":   {"python3", "-c", "import os,sys; os.setpgid(0, 0); os.execvp('bash', ['bash', '-c', sys.argv[1]])", counts},
		} {
			for to, sign := range map[string]int{"jail alone": 1, "the group": -1} {
				cmd := mtCommand(t, w, nil, argv...)
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				p := mtStart(t, cmd)
				p.wait(t, "started")
				must(t, syscall.Kill(sign*p.Process.Pid, sig))
				if r := p.end(t); !strings.Contains(r.Stdout, "came 1\n") || r.Status != 0 {
					t.Errorf("%s to %s, command %s: %+v", sig, to, name, r)
				}
			}
		}
	}
}

// Putting a carve-out back stops and continues the jail, but not what its user
// has stopped.
func TestMountsStoppedStaysStopped(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	secret := filepath.Join(w.Project, "secret")
	must(t, os.WriteFile(secret, []byte("1"), 0o600))
	p := mtStart(t, mtCommand(t, w, []string{"--hide", "secret"}, "bash", "-c",
		`(echo in > state; kill -STOP $BASHPID; echo out > state) & sleep 0.2; echo started; sleep 1.2; cat state; kill -KILL $!`))
	p.wait(t, "started")
	must(t, os.WriteFile(secret+"2", []byte("2"), 0o600))
	must(t, os.Rename(secret+"2", secret))
	time.Sleep(100 * time.Millisecond)
	if r := p.end(t); !strings.Contains(r.Stderr, "it is hidden again") || !strings.Contains(r.Stdout, "in\n") {
		t.Errorf("%+v", r)
	}
}
