package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
