package launch

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"jail/plan"
)

// TestMain lets the test binary be its own child: the steps that confine a
// process can't be undone.
func TestMain(m *testing.M) {
	if step := os.Getenv("LAUNCH_TEST_CHILD"); step != "" {
		os.Exit(child(step))
	}
	os.Exit(m.Run())
}

// reached is printed last by every child.
const reached = "reached the end\n"

func child(step string) int {
	runtime.LockOSThread()
	var err error
	switch step {
	case "capabilities":
		if err = noNewPrivs(); err == nil {
			err = dropCapabilities()
		}
		printStatus("Cap", "NoNewPrivs")
	case "limits":
		err = setLimits([]plan.Limit{{Name: "open_files", Value: 64}, {Name: "file_size", Value: 1 << 20}, {Name: "cpu", Value: 50}, {Name: "memory", Value: 1 << 60}})
		if err == nil {
			err = setLimits([]plan.Limit{{Name: "open_files", Value: 1 << 20}}) // never raises
		}
		for _, name := range []string{"core", "open_files", "file_size", "cpu", "memory"} {
			var l unix.Rlimit
			err = firstError(err, unix.Getrlimit(resource(name), &l))
			fmt.Println(name, l.Cur, l.Max)
		}
	case "descriptors":
		err = closeDescriptors()
		for _, fd := range []int{0, 1, 2, 3, 77} {
			flags, e := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			fmt.Println(fd, e == nil && flags&unix.FD_CLOEXEC == 0)
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Print(reached)
	return 0
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func printStatus(prefixes ...string) {
	b, _ := os.ReadFile("/proc/thread-self/status")
	for line := range strings.Lines(string(b)) {
		for _, p := range prefixes {
			if strings.HasPrefix(line, p) {
				fmt.Print(strings.Join(strings.Fields(line), " "), "\n")
			}
		}
	}
}

func runChild(t *testing.T, step string, files ...*os.File) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "LAUNCH_TEST_CHILD="+step)
	cmd.ExtraFiles = files
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, ok := strings.CutSuffix(string(out), reached)
	if !ok {
		t.Fatalf("the child did not reach its end:\n%s", out)
	}
	return text
}

func TestDropCapabilities(t *testing.T) {
	const none = "0000000000000000"
	got := strings.Split(strings.TrimSpace(runChild(t, "capabilities")), "\n")
	want := []string{"CapInh: " + none, "CapPrm: " + none, "CapEff: " + none, "CapBnd: " + none, "CapAmb: " + none, "NoNewPrivs: 1"}
	if os.Getuid() != 0 { // the bounding set can't be lowered, and gives nothing
		got[3], want[3] = "", ""
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestSetLimits(t *testing.T) {
	var memory unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_AS, &memory))
	want := fmt.Sprintf("core 0 1\nopen_files 64 64\nfile_size 1048576 1048576\ncpu 50 50\nmemory %d %d\n", min(memory.Cur, 1<<60), min(memory.Max, 1<<60))
	if d := cmp.Diff(want, runChild(t, "limits")); d != "" {
		t.Error(d)
	}
}

func TestCloseDescriptors(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	defer w.Close()
	want := "0 true\n1 true\n2 true\n3 false\n77 false\n"
	if d := cmp.Diff(want, runChild(t, "descriptors", r)); d != "" {
		t.Error(d)
	}
}

func TestUnknownLimitPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an unknown limit is passed over in silence")
		}
	}()
	resource("stack")
}

func TestExecProblem(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		hint   string
	}{
		{unix.E2BIG, 0, "too long"},
		{unix.ENOENT, 127, "interpreter"},
		{unix.ENOEXEC, 126, "bash /x"},
		{unix.EACCES, 126, "interpreter"},
		{unix.EIO, 126, ""},
	} {
		p, ok := execProblem("/x", []string{"x"}, tt.err).(*plan.Problem)
		if !ok || p.Status != tt.status || !strings.Contains(p.Hint, tt.hint) || !strings.Contains(p.What, `"/x"`) {
			t.Errorf("%v: %+v", tt.err, p)
		}
	}
}

// A plan that can't be enforced starts nothing.
func TestRunRefuses(t *testing.T) {
	p := plan.Plan{Promises: []plan.Promise{{ID: "x", Text: "a promise"}}}
	if _, err := Run(p, "/bin/true", []string{"true"}); err == nil || !strings.Contains(err.Error(), "a promise") {
		t.Errorf("got %v", err)
	}
}
