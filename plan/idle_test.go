package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
)

// What a rule file says of guides and artifacts is not dropped silently.
func TestIdle(t *testing.T) {
	const guide = "[[guide]]\nmatch = 'git push'\nmessage = 'no'\n"
	advice, sealed := "without mounts no advice is given ([[guide]] at f:2)", "without mounts nothing is sealed, and what is built inside does not run ([artifact] at f:"
	for _, tt := range []struct {
		text   string
		mounts bool
		want   []string
	}{
		{guide + "[artifact]\nrun = 'seal'", true, nil},
		{"", false, nil},
		{guide, false, []string{advice}},
		{"[artifact]\nrun = 'seal'", false, []string{sealed + "3)"}},
		{"[artifact]\nnetwork = false", false, []string{sealed + "3)"}},
		{"[artifact]\ndeny = ['x']", false, []string{sealed + "3)"}},
		{"files.write = ['.']\n[artifact]\nwrite = ['.']", false, []string{sealed + "4)"}},
		{"[artifact]\nrun = 'deny'", false, []string{sealed + "3)"}},
		{"[artifact]\nrun = 'deny'\nlibraries = 'deny'", false, nil},
	} {
		w := newWorld(t)
		w.host.Mounts.OK = tt.mounts
		if d := cmp.Diff(tt.want, w.plan(tt.text).Idle()); d != "" {
			t.Errorf("%q: %s", tt.text, d)
		}
	}
}

// A kernel that does not tell who listens is no secret.
func TestPeers(t *testing.T) {
	for _, tt := range []struct {
		text string
		abi  int
		ok   bool
		want bool
	}{
		{"", 7, false, true}, {"", 7, true, false}, {"", plan.UnixABI, false, false}, {"network.unix = 'any'", 7, false, false},
	} {
		w := newWorld(t)
		w.host.ABI, w.host.Peers = tt.abi, plan.Fact{OK: tt.ok, Why: "no peers"}
		p := w.plan(tt.text)
		if got := slices.ContainsFunc(p.Remarks, func(r string) bool { return strings.Contains(r, "no peers") }); got != tt.want {
			t.Errorf("%+v: %q", tt, p.Remarks)
		}
	}
}

// Where seals are executed jail has to have a directory.
func TestRunIsJails(t *testing.T) {
	for _, access := range []string{"read", "write"} {
		_, err := newWorld(t).compile("files." + access + " = ['/run']")
		var problem *plan.Problem
		if !errors.As(err, &problem) || problem.At.File != "f" || !strings.Contains(problem.What, `"/run" can't be granted as a whole`) || problem.Hint == "" {
			t.Errorf("%s: %v", access, err)
		}
		w := newWorld(t)
		w.host.Mounts.OK = false
		w.plan("files." + access + " = ['/run']")
	}
}
