package mounts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jail/plan"
)

// What was swapped between the plan and Enter is an error, or the same tree as
// before under its name; never the other one.
func TestEnterSwapped(t *testing.T) {
	for _, tt := range []struct {
		name   string
		other  func(b string) error // makes b/other
		swap   string
		grants map[string]plan.Access
		carves func(b string) []plan.Carve
		want   string
	}{
		{"write tree, directory", func(b string) error { return os.Mkdir(b+"/other", 0o755) }, "w", map[string]plan.Access{"w": plan.Write}, nil, "was replaced"},
		{"write tree, link", func(b string) error { return os.Symlink(b+"/o", b+"/other") }, "w", map[string]plan.Access{"w": plan.Write}, nil, "symbolic link"},
		{"above a write tree, link", func(b string) error { return os.Symlink(b+"/o", b+"/other") }, "w", map[string]plan.Access{"w/d": plan.Write}, nil, "symbolic link"},
		{"above a write tree, directory", func(b string) error { return os.MkdirAll(b+"/other/d", 0o755) }, "w", map[string]plan.Access{"w/d": plan.Write}, nil, "was replaced"},
		{"exec tree, directory", func(b string) error { return os.Mkdir(b+"/other", 0o755) }, "x", map[string]plan.Access{"x": plan.Exec}, nil, "was replaced"},
		{"exec tree in write tree", func(b string) error { return os.Mkdir(b+"/other", 0o755) }, "w/a/x", map[string]plan.Access{"w": plan.Write, "w/a/x": plan.Exec}, nil, "was replaced"},
		{"file", func(b string) error { return os.WriteFile(b+"/other", nil, 0o644) }, "o/f", map[string]plan.Access{"o/f": plan.Write}, nil, "was replaced"},
		{"file, link", func(b string) error { return os.Symlink(b+"/r/f", b+"/other") }, "o/f", map[string]plan.Access{"o/f": plan.Write}, nil, "symbolic link"},
		{"protected file, link", func(b string) error { return os.Symlink(b+"/o/f", b+"/other") }, "w/f", map[string]plan.Access{"w": plan.Write}, func(b string) []plan.Carve { return []plan.Carve{protect(b + "/w/f")} }, "symbolic link"},
		{"hidden directory, link", func(b string) error { return os.Symlink(b+"/o", b+"/other") }, "w/h", map[string]plan.Access{"w": plan.Write}, func(b string) []plan.Carve { return []plan.Carve{hide(b + "/w/h")} }, "symbolic link"},
		{"pin, link", func(b string) error { return os.Symlink(b+"/w/d", b+"/other") }, "w/a", map[string]plan.Access{"w": plan.Write}, func(b string) []plan.Carve { return []plan.Carve{protect(b + "/w/a/f")} }, "symbolic link"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := base(t)
			must(t, tt.other(b))
			grants := system(t)
			for path, a := range tt.grants {
				grants = append(grants, granted(t, filepath.Join(b, path), a))
			}
			var carves []plan.Carve
			if tt.carves != nil {
				carves = tt.carves(b)
			}
			s := scene{Layout: layoutOf(t, grants, carves...), Base: b, Tries: []string{"true"}}
			// Control: without the swap the layout can be entered.
			if got := child(t, s); len(got) != 2 {
				t.Fatalf("control: %q", got)
			}
			s.Swap = []string{filepath.Join(b, tt.swap), filepath.Join(b, "other")}
			got := child(t, s)
			last := got[len(got)-1]
			if !strings.HasPrefix(last, "enter: ") || !strings.Contains(last, tt.want) {
				t.Errorf("got %q, want an error with %q", got, tt.want)
			}
		})
	}
}

// A layout whose trees are gone is an error, also in a private directory.
func TestEnterGone(t *testing.T) {
	b := base(t)
	grants := append(system(t), granted(t, b+"/w", plan.Write))
	l := layoutOf(t, grants)
	must(t, os.RemoveAll(b+"/w"))
	if got := child(t, scene{Layout: l, Base: b}); len(got) != 1 || !strings.Contains(got[0], "no such file") {
		t.Errorf("%q", got)
	}
}
