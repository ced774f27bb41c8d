package confine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// TestMain lets the test binary be its own child: what is tried in place can't be
// undone.
func TestMain(m *testing.M) {
	if shell := os.Getenv("CONFINE_TEST"); shell != "" {
		s := steps(shell)
		if os.Getenv("CONFINE_LIMITS") == "none" {
			s.Limits = nil
		}
		fmt.Println(s.Exec())
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// allow is the filter that refuses nothing: it shows in NoNewPrivs and Seccomp.
var allow = []byte{0x06, 0, 0, 0, 0, 0, 0xff, 0x7f} // BPF_RET|BPF_K, SECCOMP_RET_ALLOW

func steps(shell string) Steps {
	attr := ll.RulesetAttr{HandledAccessFS: ll.AccessFSMakeSock}
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		panic(err)
	}
	return Steps{
		Ruleset: fd, Filter: allow, Ignored: IgnoredAtStart(), Path: "/bin/sh", Argv: []string{"sh", "-c", shell}, Env: []string{"PATH=/usr/bin:/bin"},
		Limits: []Limit{{unix.RLIMIT_CORE, 1}, {unix.RLIMIT_NOFILE, 64}, {unix.RLIMIT_FSIZE, 1 << 20}, {unix.RLIMIT_NOFILE, 1 << 20}},
	}
}

// start runs a line of shell in a confined child, its output in a pipe.
func start(t *testing.T, s Steps) (out string, status int) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	saved, err := unix.Dup(1)
	if err != nil {
		t.Fatal(err)
	}
	unix.Dup3(int(w.Fd()), 1, 0)
	pid, err := s.Start()
	unix.Dup3(saved, 1, 0)
	unix.Close(saved)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	var ws syscall.WaitStatus
	if _, e := syscall.Wait4(pid, &ws, 0, nil); err != nil || e != nil {
		t.Fatal(err, e)
	}
	return string(text), ws.ExitStatus()
}

// What Go makes of this process's own limits is not handed on.
func TestFileLimit(t *testing.T) {
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("prlimit", "--nofile=200:300", "/proc/self/fd/9")
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	cmd.ExtraFiles = []*os.File{6: exe}
	cmd.Env = []string{"CONFINE_TEST=ulimit -n; ulimit -Hn", "CONFINE_LIMITS=none"}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "200\n300\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func inPlace(t *testing.T, shell string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"CONFINE_TEST=" + shell}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// report prints all that the steps change. A shell that is told so keeps the
// descriptors that it gets.
const report = `grep -E '^(Cap|NoNewPrivs|Seccomp:|SigBlk)' /proc/self/status | tr -d '\t'
ulimit -c; ulimit -n; ulimit -Hn; ulimit -f
for fd in 0 1 2 3 4 5 77; do test -e /proc/$$/fd/$fd && echo open $fd; done
echo end`

func want(first []string) string {
	none := "0000000000000000"
	bounding := none
	if os.Getuid() != 0 { // it can't be lowered, and gives nothing
		for _, line := range first {
			if v, ok := strings.CutPrefix(line, "CapBnd:"); ok {
				bounding = v
			}
		}
	}
	return strings.Join([]string{
		"SigBlk:" + none,
		"CapInh:" + none, "CapPrm:" + none, "CapEff:" + none, "CapBnd:" + bounding, "CapAmb:" + none, "NoNewPrivs:1", "Seccomp:2",
		"0", "64", "64", "2048", "open 0", "open 1", "open 2", "end", "",
	}, "\n")
}

// Both ways of starting put the same on the command, and leave it the same.
func TestSteps(t *testing.T) {
	r, _, err := os.Pipe() // one more descriptor that must not arrive
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	unix.FcntlInt(r.Fd(), unix.F_SETFD, 0)
	child, status := start(t, steps(report))
	if status != 0 {
		t.Errorf("status %d", status)
	}
	for name, got := range map[string]string{"child": child, "in place": inPlace(t, report)} {
		if d := cmp.Diff(want(strings.Split(got, "\n")), got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// The child gets the environment and arguments given, and its status is its own.
func TestChildIsTheCommand(t *testing.T) {
	s := steps(`echo "$0 $A $#"; kill -TERM $$`)
	s.Argv, s.Env = append(s.Argv, "zero", "one"), append(s.Env, "A=b c")
	out, _ := start(t, s)
	if out != "zero b c 1\n" {
		t.Errorf("got %q", out)
	}
}

// What fails is named, nothing is executed, no child is left.
func TestFailure(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Steps)
		step   Step
		errno  unix.Errno
	}{
		{"no such file", func(s *Steps) { s.Path = "/nowhere/at all" }, Exec, unix.ENOENT},
		{"a directory", func(s *Steps) { s.Path = "/" }, Exec, unix.EACCES},
		{"no ruleset", func(s *Steps) { s.Ruleset = 99 }, Landlock, unix.EBADF},
		{"the zero value", func(s *Steps) { s.Ruleset = 0 }, Landlock, unix.EBADFD},
		{"no program", func(s *Steps) { s.Filter = make([]byte, 8) }, stepSeccomp, unix.EINVAL},
		{"no filter", func(s *Steps) { s.Filter = nil }, stepSeccomp, unix.EINVAL},
		{"half a filter", func(s *Steps) { s.Filter = make([]byte, 12) }, stepSeccomp, unix.EINVAL},
		{"nobody to hand the listener to", func(s *Steps) { s.Listener = 99 }, stepListener, unix.EBADF},
	} {
		s := steps("echo executed")
		tt.change(&s)
		_, err := s.Start()
		var f *Failure
		if !errors.As(err, &f) || f.Step != tt.step || f.Errno != tt.errno || !strings.Contains(err.Error(), tt.step.String()) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
			t.Errorf("%s: a child is left: %v", tt.name, err)
		}
	}
}

// The listener of the filter arrives on the socket, and nowhere else.
func TestListener(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := steps("for fd in 3 4 5 6 7 8 9; do test -e /proc/$$/fd/$fd && echo open $fd; done; echo end")
	s.Listener = pair[1]
	out, _ := start(t, s)
	if out != "end\n" {
		t.Errorf("the command has descriptors: %s", out)
	}
	space := make([]byte, unix.CmsgSpace(4))
	n, control, _, _, err := unix.Recvmsg(pair[0], make([]byte, 1), space, unix.MSG_CMSG_CLOEXEC)
	if n != 1 || err != nil {
		t.Fatal(n, err)
	}
	messages, err := unix.ParseSocketControlMessage(space[:control])
	if err != nil || len(messages) != 1 {
		t.Fatal(messages, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		t.Fatal(fds, err)
	}
	if name, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fds[0])); name != "anon_inode:seccomp notify" {
		t.Errorf("what arrived is %q", name)
	}
}

// What is ignored stays ignored, as nohup wants it.
func TestIgnoredSignalsStay(t *testing.T) {
	signals := "grep SigIgn /proc/self/status"
	before := inPlace(t, signals)
	cmd := exec.Command("sh", "-c", `trap "" USR2; exec /proc/self/fd/9`)
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{6: exe}
	cmd.Env = []string{"CONFINE_TEST=" + signals}
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) == before || !strings.HasPrefix(string(out), "SigIgn:") {
		t.Errorf("%q, and with USR2 ignored %q, %v", before, out, err)
	}
}
