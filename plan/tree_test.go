package plan_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
	"jail/rules"
)

// repo makes a git directory by hand, as git's own test wants it.
func (w *world) repo(dir string) {
	w.t.Helper()
	w.dirs(dir+"/objects/info", dir+"/refs")
	w.file(dir+"/HEAD", "ref: refs/heads/main\n")
}

func TestFindTree(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(w *world)
		cwd  string
		want plan.Tree // paths from the base, notes with the base as "B"
	}{
		{"no repository", func(w *world) { w.dirs("p/a") }, "p/a", plan.Tree{Root: "B/p/a"}},
		{"its top", func(w *world) { w.repo("p/.git") }, "p", plan.Tree{Root: "B/p"}},
		{"below", func(w *world) { w.repo("p/.git"); w.dirs("p/a/b") }, "p/a/b", plan.Tree{Root: "B/p"}},
		{"the nearest", func(w *world) { w.repo("p/.git"); w.repo("p/a/.git") }, "p/a", plan.Tree{Root: "B/p/a"}},
		{"inside .git", func(w *world) { w.repo("p/.git") }, "p/.git/refs", plan.Tree{Root: "B/p"}},
		{
			"worktree", func(w *world) {
				w.repo("main/.git")
				w.file("main/.git/worktrees/x/gitdir", w.path("wt/.git")+"\n")
				w.file("wt/.git", "gitdir: "+w.path("main/.git/worktrees/x")+"\n")
			},
			"wt",
			plan.Tree{Root: "B/wt", Git: []string{"B/main/.git"}},
		},
		{
			"worktree with relative paths", func(w *world) {
				w.repo("main/.git")
				w.file("main/.git/worktrees/x/gitdir", "../../../../wt/.git\n")
				w.file("wt/.git", "gitdir: ../main/.git/worktrees/x\n")
			},
			"wt",
			plan.Tree{Root: "B/wt", Git: []string{"B/main/.git"}},
		},
		{
			"worktree of somewhere else", func(w *world) {
				w.repo("main/.git")
				w.file("main/.git/worktrees/x/gitdir", w.path("other/.git")+"\n")
				w.dirs("other")
				w.file("wt/.git", "gitdir: "+w.path("main/.git/worktrees/x")+"\n")
			},
			"wt",
			plan.Tree{Root: "B/wt", Notes: []string{`B/wt/.git names "B/main/.git/worktrees/x", which does not point back here: not granted`}},
		},
		{
			"submodule", func(w *world) {
				w.repo("super/.git/modules/sub")
				w.file("super/.git/modules/sub/config", "[core]\n\tbare = false\n\tworktree = ../../../sub\n")
				w.file("super/sub/.git", "gitdir: ../.git/modules/sub\n")
			},
			"super/sub",
			plan.Tree{Root: "B/super/sub", Git: []string{"B/super/.git/modules/sub"}},
		},
		{
			"submodule whose config names another", func(w *world) {
				w.repo("super/.git/modules/sub")
				w.file("super/.git/modules/sub/config", "[other]\nworktree = ../../../sub\n[core]\n\tworktree = ../../../sub2\n")
				w.dirs("super/sub2")
				w.file("super/sub/.git", "gitdir: ../.git/modules/sub\n")
			},
			"super/sub",
			plan.Tree{Root: "B/super/sub", Notes: []string{`B/super/sub/.git names "B/super/.git/modules/sub", which does not point back here: not granted`}},
		},
		{
			"separate git directory", func(w *world) {
				w.repo("gits/p")
				w.file("gits/p/config", "[core]\n\tbare = false\n")
				w.file("p/.git", "gitdir: "+w.path("gits/p")+"\n")
			},
			"p",
			plan.Tree{Root: "B/p", Notes: []string{`B/p/.git names "B/gits/p", which does not point back here: not granted`}},
		},
		{
			"planted: another repository", func(w *world) {
				w.repo("other/.git")
				w.file("p/.git", "gitdir: "+w.path("other/.git")+"\n")
			},
			"p",
			plan.Tree{Root: "B/p", Notes: []string{`B/p/.git names "B/other/.git", which does not point back here: not granted`}},
		},
		{
			"planted: no git directory, with a worktree that points back", func(w *world) {
				w.file("home/worktrees/x/gitdir", w.path("p/.git"))
				w.file("p/.git", "gitdir: "+w.path("home/worktrees/x")+"\n")
			},
			"p",
			plan.Tree{Root: "B/p", Notes: []string{`B/p/.git names "B/home", which is no git directory of yours: not granted`}},
		},
		{
			"planted: git directory of links", func(w *world) {
				w.dirs("fake", "out/refs")
				w.link("B/out", "fake/objects")
				w.link("B/out", "fake/refs")
				w.file("fake/HEAD", "x")
				w.file("fake/worktrees/x/gitdir", w.path("p/.git"))
				w.file("p/.git", "gitdir: "+w.path("fake/worktrees/x")+"\n")
			},
			"p",
			plan.Tree{Root: "B/p", Notes: []string{`B/p/.git names "B/fake", which is no git directory of yours: not granted`}},
		},
		{
			"planted: a link on the way", func(w *world) {
				w.repo("other/.git")
				w.dirs("q")
				w.link("B/other/.git", "q/worktrees")
				w.file("other/.git/x/gitdir", w.path("p/.git"))
				w.file("p/.git", "gitdir: "+w.path("q/worktrees/x")+"\n")
			},
			"p",
			plan.Tree{Root: "B/p", Notes: []string{`B/p/.git names "B/other/.git/x", which does not point back here: not granted`}},
		},
		{
			"a link called .git", func(w *world) { w.repo("other/.git"); w.dirs("p"); w.link("B/other/.git", "p/.git"); w.repo(".git") },
			"p",
			plan.Tree{Root: "B/p", Notes: []string{"B/p/.git is a link and may lead anywhere: not followed"}},
		},
		{"no git file", func(w *world) { w.file("p/.git", "nonsense") }, "p", plan.Tree{Root: "B/p", Notes: []string{"B/p/.git is no git file"}}},
		{"two lines", func(w *world) { w.file("p/.git", "gitdir: a\nb\n") }, "p", plan.Tree{Root: "B/p", Notes: []string{"B/p/.git is no git file"}}},
		{"a NUL", func(w *world) { w.file("p/.git", "gitdir: a\x00b\n") }, "p", plan.Tree{Root: "B/p", Notes: []string{"B/p/.git is no git file"}}},
		{
			"a large file", func(w *world) { w.file("p/.git", "gitdir: "+string(make([]byte, 1<<17))) },
			"p",
			plan.Tree{Root: "B/p", Notes: []string{"B/p/.git is no git file"}},
		},
		{
			"alternates", func(w *world) {
				w.repo("p/.git")
				w.file("p/.git/objects/info/alternates", "# x\n"+w.path("big/objects")+"\n"+w.path("p/near")+"\nrelative\n")
			},
			"p",
			plan.Tree{Root: "B/p", Notes: []string{`git objects in "B/big/objects" are not granted`}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.make(w)
			got := plan.FindTree(w.path(tt.cwd), os.Getuid())
			got.Root = w.short(got.Root)
			for _, list := range [][]string{got.Git, got.Notes} {
				for i := range list {
					list[i] = w.short(list[i])
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// A repository of somebody else is no project, nor is a directory of theirs with
// a .git in it.
func TestFindTreeForeign(t *testing.T) {
	w := newWorld(t)
	w.repo("p/.git")
	w.dirs("p/a")
	if got := plan.FindTree(w.path("p/a"), os.Getuid()+1); got.Root != w.path("p/a") {
		t.Errorf("a foreign repository became the project %q", got.Root)
	}
	if os.Getuid() != 0 {
		return // the rest needs files of two owners
	}
	w.must(os.Chown(w.path("p"), 1234, 1234))
	if got := plan.FindTree(w.path("p/a"), 0); got.Root != w.path("p/a") {
		t.Errorf("a .git in a foreign directory made it the project: %q", got.Root)
	}
	w.must(os.Chown(w.path("p"), 0, 0))
	w.repo("main/.git")
	w.file("main/.git/worktrees/x/gitdir", w.path("wt/.git"))
	w.file("wt/.git", "gitdir: "+w.path("main/.git/worktrees/x"))
	w.must(os.Chown(w.path("main/.git"), 1234, 1234))
	if got := plan.FindTree(w.path("wt"), 0); got.Git != nil {
		t.Errorf("a foreign git directory is granted: %q", got.Git)
	}
}

func TestTreeGrant(t *testing.T) {
	w := newWorld(t)
	w.repo("main/.git")
	w.host.Tree.Git = []string{w.path("main/.git")}
	for text, want := range map[string][]string{
		`files.write = ["."]`: {"read+write B/home/proj", "read+write B/main/.git"},
		`files.read = ["."]`:  {"read B/home/proj", "read B/main/.git"},
		`files.exec = ["."]`:  {"read+exec B/home/proj", "read B/main/.git"}, // hooks do not run from there
		``:                    nil,
	} {
		if d := cmp.Diff(want, w.grants(w.plan(text))); d != "" {
			t.Errorf("%s\n%s", text, d)
		}
	}
	w.host.Mounts = plan.Fact{} // it would take the outer right away
	_, err := w.compile("files = { write = ['.'],\nexec = ['${B}/main'] }")
	want := []string{`f:2: "B/main/.git" may be written (f:2: "git directory of the project") and executed (f:3: "${B}/main")`, dropOne}
	if d := cmp.Diff(want, w.said(err)); d != "" {
		t.Error(d)
	}
}

// The git directory of a worktree or a submodule lies elsewhere, but git runs its
// hooks and what its config names all the same: the carve-outs of .git go along.
func TestGitDirectoryOutsideIsCarvedToo(t *testing.T) {
	w := newWorld(t)
	w.repo("main/.git")
	w.file("main/.git/hooks/pre-commit", "")
	w.file("main/.git/config", "")
	w.file("main/.git/worktrees/x/gitdir", w.path("home/proj/.git"))
	w.file("home/proj/.git", "gitdir: "+w.path("main/.git/worktrees/x"))
	w.host.Tree = plan.FindTree(w.path("home/proj"), os.Getuid())
	p := w.plan("files = { write = ['.'], protect = ['.git/hooks?', '.git/config?'] }")
	for _, name := range []string{"main/.git/hooks", "main/.git/config"} {
		if p.Access(w.path(name))&plan.Write == 0 {
			continue
		}
		if !slices.ContainsFunc(p.Carves, func(c plan.Carve) bool { return c.Path == w.path(name) && c.Open() }) {
			t.Errorf("%s may be written and no carve-out says so", name)
		}
	}
}

func TestTreeRefusals(t *testing.T) {
	const hint = "change to the directory of one project first"
	for _, tt := range []struct {
		name string
		make func(w *world)
		root string // from the base, or absolute
		want string
	}{
		{"a project", nil, "home/proj", ""},
		{"beside home", nil, "out", ""},
		{"home", nil, "home", "is your home directory"},
		{"above home", nil, ".", "contains your home directory"},
		{"the root", nil, "/", "is the root of the file system"},
		{"/tmp", nil, "/tmp", "is shared by all programs"},
		{"/var/tmp", nil, "/var/tmp", "is shared by all programs"},
		{"/dev/shm", nil, "/dev/shm", "is shared by all programs"},
		{"TMPDIR", func(w *world) { w.t.Setenv("TMPDIR", w.path("tmp")+"/") }, "tmp", "is shared by all programs"},
		{"TMPDIR behind a link", func(w *world) { w.link("tmp", "t"); w.t.Setenv("TMPDIR", w.path("t")) }, "tmp", "is shared by all programs"},
		{"home behind a link", func(w *world) { w.link("home", "h"); w.host.Home = w.path("h") }, "home", "is your home directory"},
		{"a secret", func(w *world) { w.dirs("home/.ssh") }, "home/.ssh", "holds secrets (~/.ssh)"},
		{"in a secret", func(w *world) { w.dirs("home/.ssh/d") }, "home/.ssh/d", "holds secrets (~/.ssh)"},
		{"above a secret", func(w *world) { w.dirs("home/.config/gh") }, "home/.config", "holds jail's own files"},
		{"above a secret file", func(w *world) { w.file("home/x/key", "") }, "home/x", "holds secrets (~/x/key)"},
		{"where a secret would be", nil, "home/x", ""},
		{"jail's own", nil, "home/.config/jail", "holds jail's own files"},
		{"a secret behind a link", func(w *world) { w.dirs("out/ssh"); w.link("B/out/ssh", "home/.ssh") }, "out", "holds secrets (~/.ssh)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if tt.make != nil {
				tt.make(w)
			}
			root := tt.root
			if !filepath.IsAbs(root) {
				w.dirs(root)
				root = w.path(root)
			}
			w.host.Tree.Root, w.host.Cwd = root, root
			_, err := w.compile(`files = { read = ["."], hide = ["~/.ssh?", "~/.config/gh?", "~/x/key?"] }`)
			var want []string
			if tt.want != "" {
				want = []string{`the project tree would be "` + w.short(root) + `", which ` + tt.want, hint}
			}
			if d := cmp.Diff(want, w.said(err)); d != "" {
				t.Error(d)
			}
			// Who grants nothing there may stand anywhere.
			w.must(func() error { _, err := w.compileAll(rules.Input{}); return err }())
		})
	}
}
