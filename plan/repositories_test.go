package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
)

func TestRepositories(t *testing.T) {
	w := newWorld(t)
	w.repo("home/proj/.git")
	w.repo("home/proj/a/b/.git")
	w.repo("home/proj/bare.git")
	w.repo("home/proj/node_modules/x/.git") // installed, not looked into
	w.file("home/proj/sub/.git", "gitdir: ../.git/modules/sub\n")
	w.dirs("home/proj/linked")
	w.link("B/out", "home/proj/linked/.git")
	w.link("B/out", "home/proj/way") // not followed
	w.repo("out/x/.git")
	got, whole := plan.Repositories(w.path("home/proj"))
	want := []string{w.path("home/proj/.git"), w.path("home/proj/bare.git"), w.path("home/proj/sub/.git"), w.path("home/proj/a/b/.git")}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" || !whole {
		t.Errorf("whole %t\n%s", whole, d)
	}
}

func TestRepositoriesAreBounded(t *testing.T) {
	w := newWorld(t)
	for i := range 1600 {
		w.dirs(fmt.Sprintf("home/proj/d%d", i))
	}
	if _, whole := plan.Repositories(w.path("home/proj")); whole {
		t.Error("1600 directories are said to have been looked into")
	}
	p := w.plan("files = { write = ['.'], protect = ['.git/config?'] }")
	if !slices.ContainsFunc(p.Tree.Notes, func(n string) bool { return strings.Contains(n, "directories only") }) {
		t.Errorf("no note: %q", p.Tree.Notes)
	}
}

// gitDir makes a git directory with a config.
func gitDir(w *world, dir string) {
	w.repo(dir)
	w.file(dir+"/config", "")
}

// The report at exit compares with what was there, whatever the rules protect.
func TestRepositoriesAreKnownWithoutARule(t *testing.T) {
	w := newWorld(t)
	w.repo("home/proj/.git")
	want := []string{w.path("home/proj/.git")}
	if d := cmp.Diff(want, w.plan("files.write = ['.']").Repositories); d != "" {
		t.Error(d)
	}
}

// A rule for .git/config speaks of every repository of the project.
func TestEveryRepositoryIsCarved(t *testing.T) {
	const rule = "files = { write = ['.'], protect = ['.git/config?'] }"
	for _, tt := range []struct {
		name, text string
		make       func(w *world)
		want       []string
	}{
		{"none", rule, func(w *world) {}, nil},
		{"its own", rule, func(w *world) { gitDir(w, "home/proj/.git"); w.file("home/proj/.git/hooks/x", "") }, []string{".git/config", ".git/hooks"}},
		{"nested", rule, func(w *world) { gitDir(w, "home/proj/a/.git"); w.file("home/proj/a/.git/info/attributes", "") }, []string{"a/.git/config", "a/.git/info/attributes"}},
		{
			"submodule", rule, func(w *world) {
				gitDir(w, "home/proj/.git")
				gitDir(w, "home/proj/.git/modules/m")
				w.file("home/proj/m/.git", "gitdir: ../.git/modules/m\n")
			},
			[]string{".git/config", ".git/modules/m/config", "m/.git"},
		},
		{
			"worktree", rule, func(w *world) {
				gitDir(w, "home/proj/.git")
				w.file("home/proj/.git/worktrees/t/gitdir", "x")
				w.file("home/proj/.git/worktrees/t/commondir", "../..")
			},
			[]string{".git/config", ".git/worktrees/t/commondir", ".git/worktrees/t/gitdir"},
		},
		{
			"submodules with odd names", rule, func(w *world) {
				gitDir(w, "home/proj/.git")
				gitDir(w, "home/proj/.git/modules/hooks")
				gitDir(w, "home/proj/.git/modules/lib/objects/modules/refs")
				gitDir(w, "home/proj/.git/modules/lib/objects")
			},
			[]string{".git/config", ".git/modules/hooks/config", ".git/modules/lib/objects/config", ".git/modules/lib/objects/modules/refs/config"},
		},
		{
			"submodule of a worktree", rule, func(w *world) {
				gitDir(w, "home/proj/.git")
				gitDir(w, "home/proj/.git/worktrees/t/modules/m")
			},
			[]string{".git/config", ".git/worktrees/t/modules/m/config"},
		},
		{"not asked for", "files = { write = ['.'] }", func(w *world) { gitDir(w, "home/proj/.git") }, nil},
		{"not writable", "files = { read = ['.'], protect = ['.git/config?'] }", func(w *world) { gitDir(w, "home/proj/.git") }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.make(w)
			var got []string
			for _, c := range w.plan(tt.text).Carves {
				if rest, ok := strings.CutPrefix(c.Path, w.path("home/proj")+"/"); ok && c.Open() {
					got = append(got, rest)
				}
			}
			slices.Sort(got)
			if d := cmp.Diff(tt.want, slices.Compact(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

// git rewrites the config of a submodule at each update, no other.
func TestOnlyConfigOfSubmodulesIsCopied(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{".git", ".git/modules/m", ".git/worktrees/t/modules/m", "modules/x/.git"} {
		gitDir(w, "home/proj/"+dir)
	}
	w.file("home/proj/.git/modules/m/hooks/x", "")
	var got []string
	for _, c := range w.plan("files = { write = ['.'], protect = ['.git/config?'] }").Carves {
		if c.Copy {
			got = append(got, strings.TrimPrefix(c.Path, w.path("home/proj")+"/"))
		}
	}
	slices.Sort(got)
	if d := cmp.Diff([]string{".git/modules/m/config", ".git/worktrees/t/modules/m/config"}, got); d != "" {
		t.Error(d)
	}
}

func TestPatternsAreResolved(t *testing.T) {
	w := newWorld(t)
	for _, f := range []string{".env", ".env.local", "a/.env.x", "a/b/.env.y/z", "a/env"} {
		w.file("home/proj/"+f, "")
	}
	w.file("out/.env.q", "")
	w.link("B/out", "home/proj/l")
	p := w.plan("files = { write = ['.'], hide = ['**/.env.*', '*.none'] }")
	var got []string
	for _, c := range p.Carves {
		got = append(got, fmt.Sprint(strings.TrimPrefix(c.Path, w.path("home/proj")+"/"), " ", c.Open()))
	}
	slices.Sort(got)
	want := []string{"*.none false", ".env.local true", "a/.env.x true", "a/b/.env.y true"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
