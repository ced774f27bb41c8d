package guard_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jail/guard"
	"jail/plan"
)

// tree writes files below a new directory; a name with a final slash is a
// directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, files)
	return root
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if name[len(name)-1] == '/' {
			must(t, os.MkdirAll(path, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

func fifo(t *testing.T, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func snapshot(root string) guard.Snapshot {
	repos, _ := plan.Repositories(root)
	s, _ := guard.Take(root, repos)
	return s
}

func TestDiff(t *testing.T) {
	start := map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/objects/": "", ".git/refs/": "", ".git/config": "[core]\n", ".git/hooks/x.sample": "#\n",
		"package.json": `{"name":"a","scripts":{"t":"1"}}`, ".github/workflows/ci.yml": "on: push\n", ".envrc": "a\n", "main.go": "package main\n",
		"sub/.git/HEAD": "x", "sub/.git/objects/": "", "sub/.git/refs/": "", "sub/.git/config": "y",
	}
	for _, tt := range []struct {
		name  string
		write map[string]string
		gone  string
		want  []guard.Change
	}{
		{name: "nothing"},
		{name: "sources", write: map[string]string{"main.go": "changed", "x/y.go": "new", "Makefile": "all:"}},
		{name: "commits", write: map[string]string{".git/objects/aa/bb": "x", ".git/refs/heads/x": "1", ".git/index": "i"}},
		{name: "a hook", write: map[string]string{".git/hooks/pre-commit": "evil"}, want: []guard.Change{{".git/hooks/pre-commit", "new", "git"}}},
		{name: "config", write: map[string]string{".git/config": "[core]\nfsmonitor=x\n"}, want: []guard.Change{{".git/config", "changed", "git"}}},
		{name: "commondir", write: map[string]string{".git/commondir": "/evil"}, want: []guard.Change{{".git/commondir", "new", "git"}}},
		{name: "a nested repository's config", write: map[string]string{"sub/.git/config": "z"}, want: []guard.Change{{"sub/.git/config", "changed", "git"}}},
		{name: "a submodule's", write: map[string]string{".git/modules/m/config": "z", ".git/modules/m/objects/aa/x": "o"}, want: []guard.Change{{".git/modules/m/config", "new", "git"}}},
		{name: "a repository appears", write: map[string]string{"new/.git/HEAD": "x", "new/.git/config": "y", "new/.git/hooks/z": "z"}, want: []guard.Change{{"new/.git", "new", "git"}}},
		{name: "a bare one", write: map[string]string{"docs/d/HEAD": "x", "docs/d/objects/": "", "docs/d/refs/": "", "docs/d/config": "y"}, want: []guard.Change{{"docs/d", "new", "git"}}},
		{name: "a git file", write: map[string]string{"wt/.git": "gitdir: /evil\n"}, want: []guard.Change{{"wt/.git", "new", "git"}}},
		{name: "dependencies", write: map[string]string{"package.json": `{"name":"b","dependencies":{"x":"1"},"scripts":{"t":"1"}}`}},
		{name: "scripts", write: map[string]string{"package.json": `{"name":"a","scripts":{"t":"evil"}}`}, want: []guard.Change{{"package.json", "changed", "npm scripts"}}},
		{name: "package.json is broken", write: map[string]string{"package.json": `{`}, want: []guard.Change{{"package.json", "changed", "npm scripts"}}},
		{name: "editors", write: map[string]string{".vscode/tasks.json": "{}", ".idea/a/b.xml": "<a/>"}, want: []guard.Change{{".idea/a/b.xml", "new", "JetBrains editors"}, {".vscode/tasks.json", "new", "VS Code"}}},
		{name: "deep ones", write: map[string]string{"a/b/.envrc": "x", "a/.github/workflows/x.yml": "x", "a/node_modules/x/package.json": "{}"}, want: []guard.Change{{"a/.github/workflows/x.yml", "new", "GitHub Actions"}, {"a/b/.envrc", "new", "direnv"}}},
		{name: "a worktree", write: map[string]string{".git/worktrees/w/commondir": "../..", ".git/worktrees/w/gitdir": "x", "w/.git": "gitdir: x"}, want: []guard.Change{{".git/worktrees/w", "new", "git"}, {"w/.git", "new", "git"}}},
		{name: "gone", gone: ".envrc", want: []guard.Change{{".envrc", "gone", "direnv"}}},
		{name: "a workflow", write: map[string]string{".github/workflows/ci.yml": "x"}, want: []guard.Change{{".github/workflows/ci.yml", "changed", "GitHub Actions"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := tree(t, start)
			before := snapshot(root)
			write(t, root, tt.write)
			if tt.gone != "" {
				must(t, os.Remove(filepath.Join(root, tt.gone)))
			}
			if d := cmp.Diff(tt.want, before.Diff(snapshot(root))); d != "" {
				t.Error(d)
			}
		})
	}
}

// What the jail leaves may be anything: nothing is waited for or followed.
func TestOddFiles(t *testing.T) {
	root := tree(t, map[string]string{".envrc": "a"})
	before := snapshot(root)
	must(t, os.Remove(filepath.Join(root, ".envrc")))
	fifo(t, filepath.Join(root, ".envrc"))
	must(t, os.Symlink("/dev/zero", filepath.Join(root, ".npmrc")))
	must(t, os.Symlink("/", filepath.Join(root, ".vscode")))
	done := make(chan []guard.Change, 1)
	go func() { done <- before.Diff(snapshot(root)) }()
	select {
	case got := <-done:
		want := []guard.Change{{".envrc", "changed", "direnv"}, {".npmrc", "new", "npm"}, {".vscode", "new", "VS Code"}}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a fifo or a device keeps the report waiting")
	}
}
