package launch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"jail/confine"
	"jail/plan"
)

func TestLimits(t *testing.T) {
	got := limits([]plan.Limit{{Name: "open_files", Value: 64}, {Name: "file_size", Value: 1 << 20}, {Name: "cpu", Value: 50}, {Name: "memory", Value: 1 << 60}})
	want := []confine.Limit{
		{Resource: unix.RLIMIT_CORE, Value: 1},
		{Resource: unix.RLIMIT_NOFILE, Value: 64},
		{Resource: unix.RLIMIT_FSIZE, Value: 1 << 20},
		{Resource: unix.RLIMIT_CPU, Value: 50},
		{Resource: unix.RLIMIT_AS, Value: 1 << 60},
	}
	if d := cmp.Diff(want, got); d != "" {
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

// What went wrong is said as the person can use it, with the status of env(1).
func TestStartProblem(t *testing.T) {
	for _, tt := range []struct {
		failure confine.Failure
		status  int
		says    string
	}{
		{confine.Failure{Step: confine.Exec, Errno: unix.E2BIG}, 0, "too long"},
		{confine.Failure{Step: confine.Exec, Errno: unix.ENOENT}, 127, "interpreter"},
		{confine.Failure{Step: confine.Exec, Errno: unix.ENOEXEC}, 126, "bash /x"},
		{confine.Failure{Step: confine.Exec, Errno: unix.EACCES}, 126, "interpreter"},
		{confine.Failure{Step: confine.Exec, Errno: unix.EIO}, 126, `"/x"`},
		{confine.Failure{Step: confine.Landlock, Errno: unix.E2BIG}, 0, "nested 16 deep"},
	} {
		p, ok := startProblem(confine.Steps{Path: "/x", Argv: []string{"x"}}, &tt.failure).(*plan.Problem)
		if !ok || p.Status != tt.status || !strings.Contains(p.What+p.Hint, tt.says) {
			t.Errorf("%v: %+v", tt.failure, p)
		}
	}
	other := &confine.Failure{Step: confine.Landlock, Errno: unix.EBADF}
	if err := startProblem(confine.Steps{}, other); err != error(other) {
		t.Errorf("%v became %v", other, err)
	}
}

// A plan that can't be enforced starts nothing.
func TestRunRefuses(t *testing.T) {
	p := plan.Plan{Promises: []plan.Promise{{ID: "x", Text: "a promise"}}}
	if _, err := Run(p, "/bin/true", []string{"true"}, Options{}); err == nil || !strings.Contains(err.Error(), "a promise") {
		t.Errorf("got %v", err)
	}
}
