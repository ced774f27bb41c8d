package integration_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jail/internal/testenv"
)

// badNested is a command line of n jails, one in the other.
func badNested(t *testing.T, n int, argv ...string) []string {
	t.Helper()
	var line []string
	for range n {
		line = slices.Concat(line, evJailed(t, "--exec", testenv.JailBin(t)))
	}
	return append(line, argv...)
}

func TestBadInputNestedWorks(t *testing.T) {
	w := testenv.NewWorld(t)
	for _, n := range []int{2, 3, 16} {
		r := evRun(t, w, "", nil, badNested(t, n, "sh", "-c", `echo x > made; cat made; echo $TMPDIR; echo x > "$TMPDIR/f"; cat ../outside/keep`)...)
		lines := strings.Split(r.Stdout, "\n")
		if len(lines) != 3 || lines[0] != "x" || strings.Count(lines[1], "jail-tmp-") != n || !strings.Contains(r.Stderr, "Permission denied") {
			t.Errorf("%d deep: %+v", n, r)
		}
	}
}

func TestBadInputNestedTooDeep(t *testing.T) {
	w := testenv.NewWorld(t)
	r := evRun(t, w, "", nil, badNested(t, 17, "touch", "marker")...)
	badInput{want: []string{"nested 16 deep"}}.checkMessage(t, r.Stderr)
	if r.Status != 125 || r.Stdout != "" {
		t.Errorf("got %+v", r)
	}
	if evRun(t, w, "", nil, "ls", filepath.Join(w.Project, "marker")).Status == 0 {
		t.Error("the command was started")
	}
}

// The inner jail can't grant what the outer one does not.
func TestBadInputNestedWidens(t *testing.T) {
	w := testenv.NewWorld(t)
	inner := evJailed(t, "--read", w.Outside, "--write", w.Outside)
	r := evRun(t, w, "", nil, append(badNested(t, 1), append(inner, "sh", "-c", `cat "$1/keep" || echo > "$1/new" || echo end`, "sh", w.Outside)...)...)
	if !strings.HasSuffix(r.Stdout, "end\n") || strings.Count(r.Stderr, "Permission denied") != 2 {
		t.Errorf("got %+v", r)
	}
}
