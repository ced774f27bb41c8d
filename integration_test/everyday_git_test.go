package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jail/internal/testenv"
)

func TestEverydayGit(t *testing.T) {
	commit := [][]string{
		{"bash", "-ec", "echo x > new; git add -A; git status --short; git commit -qm second; git log --format=%s; git status --short"},
		{"git", "branch", "side"},
		{"git", "gc", "-q"},
		{"git", "fsck"},
	}
	for _, job := range []evJob{
		{
			name: "repository", want: "second",
			steps: append(commit, []string{"bash", "-ec", evGitWork}),
		},
		{name: "linked worktree", setup: evWorktree, dir: "wt", want: "second", steps: commit},
		{name: "directory of a linked worktree", setup: evWorktree, dir: "wt/sub", want: "second", steps: commit},
		{name: "submodule", setup: evSubmodule, dir: "project/sub", want: "second", steps: commit},
		{name: "submodule from above", setup: evSubmodule, want: "fourth", steps: [][]string{
			{"bash", "-ec", "cd sub; echo y > more; git add more; git commit -qm third; cd ..; git commit -qam fourth; git log --format=%s; git submodule status"},
		}},
		{name: "nested submodule", setup: evSubmodule, dir: "project/sub/deep", want: "second", steps: commit},
		{name: "worktree of a bare repository", dir: "wt", want: "second", steps: commit, setup: evShell(
			"git clone -q --bare . ../bare.git; git -C ../bare.git worktree add -q ../wt",
		)},
		{name: "worktree with relative names", dir: "wt", want: "second", steps: commit, setup: evShell(
			"git worktree add -q ../wt; echo gitdir: ../project/.git/worktrees/wt > ../wt/.git; echo ../../../../wt/.git > .git/worktrees/wt/gitdir",
		)},
		{name: "worktree of a submodule", dir: "wt", want: "second", steps: commit, setup: func(t *testing.T, w *testenv.World) {
			evSubmodule(t, w)
			evMust(t, w, "project/sub", "git", "worktree", "add", "-q", "../../wt")
		}},
		{name: "submodule in a worktree", dir: "wt/sub", want: "second", steps: commit, setup: func(t *testing.T, w *testenv.World) {
			evSubmodule(t, w)
			evShell("git worktree add -q ../wt; cd ../wt; git -c protocol.file.allow=always submodule --quiet update --init")(t, w)
		}},
		{name: "new repository", dir: "outside", want: "one", steps: [][]string{
			{"git", "init", "-q"},
			{"bash", "-ec", "git add -A; git commit -qm one; git log --format=%s"},
		}},
	} {
		t.Run(job.name, job.parallel)
	}
}

// evGitWork is an afternoon with git.
const evGitWork = `
git checkout -qb topic
echo one > a; git add a; git commit -qm topic-one
echo two >> a; git stash -q; git stash list; git stash pop -q; git commit -qam topic-two
git checkout -q main; git merge -q --no-ff -m merged topic; git branch -d topic
git tag v1; git rebase -q v1; git reset -q --hard v1; git revert --no-edit HEAD^2 | tail -n 1
git diff --stat v1; git log --format=%s | sort; git blame a | wc -l
git worktree add -q linked; git worktree list | wc -l; git worktree remove linked
git clone -q . copy; git -C copy log --format=%s | wc -l; rm -rf copy
git clean -fdxq; git status --short; git reflog | wc -l; git branch
`

func evWorktree(t *testing.T, w *testenv.World) {
	t.Helper()
	w.Git(t, "worktree", "add", "-q", filepath.Join(w.Home, "wt"))
	if err := os.Mkdir(filepath.Join(w.Home, "wt", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func evSubmodule(t *testing.T, w *testenv.World) {
	t.Helper()
	evRepository(t, w, "deep")
	evRepository(t, w, "lib")
	evShell(`g="git -c protocol.file.allow=always submodule --quiet"
		cd ../lib; $g add ~/deep deep; git commit -qm deep
		cd ../project; $g add ~/lib sub; $g update --init --recursive; git commit -qm submodule`)(t, w)
}

// evShell prepares a world with a shell line, bare, in the project.
func evShell(line string) func(*testing.T, *testenv.World) {
	return func(t *testing.T, w *testenv.World) {
		t.Helper()
		evMust(t, w, "", "bash", "-ec", line)
	}
}

// evRepository makes another repository with one commit below HOME.
func evRepository(t *testing.T, w *testenv.World, name string) {
	t.Helper()
	w.WriteFile(t, filepath.Join(w.Home, name, "file"), name+"\n")
	evMust(t, w, name, "bash", "-ec", "git init -q; git add -A; git commit -qm other")
}

// Git finds the rest of a repository through small files that can be written in
// the jail. None of them may win a grant: each row prepares a directory below
// HOME, and names a file that must stay out of reach of a jail started there.
func TestEverydayGitPlanted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		setup  func(t *testing.T, w *testenv.World)
		dir    string
		target string // below HOME
	}{
		{"git file names a repository", func(t *testing.T, w *testenv.World) {
			w.WriteFile(t, filepath.Join(w.Home, "bait", ".git"), "gitdir: "+w.Project+"/.git\n")
		}, "bait", "project/.git/config"},
		{"git file names ~/.ssh", func(t *testing.T, w *testenv.World) {
			w.WriteFile(t, filepath.Join(w.Home, "bait", ".git"), "gitdir: ../.ssh\n")
		}, "bait", ".ssh/id_test"},
		{"git file names another's worktree", func(t *testing.T, w *testenv.World) {
			evWorktree(t, w)
			w.WriteFile(t, filepath.Join(w.Home, "bait", ".git"), "gitdir: "+w.Project+"/.git/worktrees/wt\n")
		}, "bait", "project/.git/config"},
		{"git link names a repository", func(t *testing.T, w *testenv.World) {
			evLink(t, filepath.Join(w.Project, ".git"), filepath.Join(w.Outside, ".git"))
		}, "outside", "project/.git/config"},
		{"git file changed by an earlier run", func(t *testing.T, w *testenv.World) {
			evWorktree(t, w)
			evRepository(t, w, "victim")
			evInside(t, w, "wt", "echo gitdir: "+w.Home+"/victim/.git > .git")
		}, "wt", "victim/.git/config"},
		{"commondir changed by an earlier run", func(t *testing.T, w *testenv.World) {
			evWorktree(t, w)
			evRepository(t, w, "victim")
			evInside(t, w, "wt", "echo "+w.Home+"/victim/.git > $(git rev-parse --git-dir)/commondir")
		}, "wt", "victim/.git/config"},
		{"worktree directory replaced by an earlier run", func(t *testing.T, w *testenv.World) {
			evWorktree(t, w)
			evRepository(t, w, "victim")
			evInside(t, w, "wt", "d=$(git rev-parse --git-dir); mv $d $d.old; ln -s "+w.Home+"/victim/.git $d")
		}, "wt", "victim/.git/config"},
		{"gitdir changed by an earlier run", func(t *testing.T, w *testenv.World) {
			// The way back now names a directory whose own .git is bait.
			evWorktree(t, w)
			w.WriteFile(t, filepath.Join(w.Home, "bait", ".git"), "gitdir: "+w.Project+"/.git/worktrees/wt\n")
			evInside(t, w, "wt", "echo "+w.Home+"/bait/.git > $(git rev-parse --git-dir)/gitdir")
		}, "wt", "project/.git/config"},
		{"core.worktree changed by an earlier run", func(t *testing.T, w *testenv.World) {
			evRepository(t, w, "victim")
			evInside(t, w, "", "git config core.worktree "+w.Home+"/victim")
		}, "", "victim/.git/config"},
		{"alternates", func(t *testing.T, w *testenv.World) {
			evRepository(t, w, "victim")
			evInside(t, w, "", "mkdir -p .git/objects/info; echo "+w.Home+"/victim/.git/objects > .git/objects/info/alternates")
			w.WriteFile(t, filepath.Join(w.Home, "victim", ".git", "objects", "mark"), "x\n")
		}, "", "victim/.git/objects/mark"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := testenv.NewWorld(t)
			tt.setup(t, w)
			target := filepath.Join(w.Home, tt.target)
			attack := []string{"bash", "-c", `cat "$1"; echo >> "$1"; echo end`, "bash", target}
			r := evRun(t, w, tt.dir, nil, append(evJailed(t), attack...)...)
			if r.Stdout != "end\n" || strings.Count(r.Stderr, "Permission denied") != 2 {
				t.Errorf("in the jail: status %d, stdout %q, stderr %q", r.Status, r.Stdout, r.Stderr)
			}
			if r := evRun(t, w, tt.dir, nil, attack...); r.Stderr != "" || len(r.Stdout) <= len("end\n") {
				t.Errorf("control: stdout %q, stderr %q", r.Stdout, r.Stderr)
			}
		})
	}
}

// evInside runs a shell line in the jail, as an earlier run that plants.
func evInside(t *testing.T, w *testenv.World, dir, line string) {
	t.Helper()
	evMust(t, w, dir, append(evJailed(t), "bash", "-ec", line)...)
}

func evLink(t *testing.T, target, link string) {
	t.Helper()
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
}

// What the tree's own repository holds is granted; the rest of a worktree's main
// tree is not.
func TestEverydayWorktreeGrantsNoMore(t *testing.T) {
	w := testenv.NewWorld(t)
	evWorktree(t, w)
	line := `echo > "$1/.git/mark" && cat "$1/README.md"; echo end`
	r := evRun(t, w, "wt", nil, append(evJailed(t), "bash", "-c", line, "bash", w.Project)...)
	if r.Stdout != "end\n" || strings.Count(r.Stderr, "Permission denied") != 1 || !strings.Contains(r.Stderr, "README") {
		t.Errorf("stdout %q, stderr %q", r.Stdout, r.Stderr)
	}
}
