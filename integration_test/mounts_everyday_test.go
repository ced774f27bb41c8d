package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

// mtJob is an evJob in a jail with the mounts layer.
func mtJob(t *testing.T, j evJob) {
	t.Parallel()
	j.compare(t, mtJailed(t, j.flags...))
}

func TestMountsEverydayGit(t *testing.T) {
	mtPlaces(t, func(t *testing.T, _ bool) {
		commit := [][]string{
			{"bash", "-ec", "echo x > new; git add -A; git status --short; git commit -qm second; git log --format=%s; git status --short"},
			{"git", "branch", "side"},
			{"git", "gc", "-q"},
			{"git", "fsck"},
		}
		remote := evShell("git clone -q --bare . ../remote.git; git remote add origin ~/remote.git; git fetch -q; git -C ../remote.git branch topic main; git -C ../remote.git branch more main")
		for _, j := range []evJob{
			{name: "repository", steps: append(commit, []string{"bash", "-ec", evGitWork})},
			{name: "linked worktree", setup: evWorktree, dir: "wt", steps: commit},
			{name: "submodule", setup: evSubmodule, dir: "project/sub", steps: commit},
			{name: "submodule from above", setup: evSubmodule, steps: [][]string{
				{"bash", "-ec", "cd sub; echo y > more; git add more; git commit -qm third; cd ..; git commit -qam fourth; git log --format=%s; git submodule status"},
			}},
			{name: "nested repository", setup: evShell("mkdir n; git -C n init -q; touch n/f; git -C n add f; git -C n commit -qm n"), steps: [][]string{
				{"bash", "-ec", "cd n; echo y > f; git commit -qam two; git checkout -qb b; git rebase -q main; git gc -q; git log --format=%s"},
			}},
			{name: "fetch, merge and push", setup: remote, flags: []string{"--write", "../remote.git"}, steps: [][]string{
				{"bash", "-ec", "git fetch -q origin; git merge -q origin/topic; git pull -q origin main; echo x > f; git add f; git commit -qm f; git push -q origin main; git log origin/main --format=%s"},
			}},
			{name: "worktree", steps: [][]string{
				{"bash", "-ec", "git worktree add -q linked; cd linked; echo x > f; git add f; git commit -qm wt; cd ..; git merge -q linked; git worktree remove linked; git branch -d linked; git worktree list | wc -l"},
			}},
			{name: "cherry-pick", steps: [][]string{
				{"bash", "-ec", "git checkout -qb b; echo x > f; git add f; git commit -qm 3; git checkout -q main; git cherry-pick b | wc -l; git log --format=%s"},
			}},
		} {
			t.Run(j.name, func(t *testing.T) { mtJob(t, j) })
		}
	})
}

// A hook decides as it does outside.
func TestMountsEverydayHook(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	evShell("mkdir -p .git/hooks; printf '#!/bin/sh\\necho hook runs; exit 1\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit")(t, w)
	r := mtRun(t, w, nil, "git commit -qm 2 --allow-empty; git log --format=%s | wc -l")
	if r.Stdout != "1\n" || r.Stderr != "hook runs\n" {
		t.Errorf("%+v", r)
	}
}

// What works with submodules inside, and what the README says does not: git
// rewrites a submodule's config at each update, so the jail has a copy of it.
func TestMountsEverydaySubmodule(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	evSubmodule(t, w)
	r := mtRun(t, w, []string{"--read", filepath.Join(w.Home, "lib"), "--read", filepath.Join(w.Home, "deep")},
		`git submodule status --recursive && git -C sub -c protocol.file.allow=always fetch && git submodule foreach --recursive git status --short`)
	if r.Status != 0 || r.Stderr != "" {
		t.Errorf("%+v", r)
	}
	r = mtRun(t, w, []string{"--read", filepath.Join(w.Home, "lib"), "--read", filepath.Join(w.Home, "deep")},
		`git -C sub checkout -q HEAD~1 2>/dev/null; git -c protocol.file.allow=always submodule update --recursive; git submodule status | cut -c1`)
	if r.Status != 0 || r.Stderr != "" || !strings.Contains(r.Stdout, "checked out") || !strings.HasSuffix(r.Stdout, "\n \n") {
		t.Errorf("update: %+v", r)
	}
}

// What the jail writes into a submodule's config stays in its own copy, and is
// named at the end. The file on the host is never anything else than it was.
func TestMountsSubmoduleConfig(t *testing.T) {
	mtNeed(t)
	for _, tt := range []struct{ name, line, want string }{
		{"git config", `git -C sub config core.fsmonitor evil; git -C sub config core.fsmonitor`, "evil\n"},
		{"append", `echo '[core]' >> .git/modules/sub/config; tail -n 1 .git/modules/sub/config`, "[core]\n"},
		{"nested", `git -C sub/deep config a.b evil; git -C sub/deep config a.b`, "evil\n"},
		{"the copy is gone", `rm -rf /tmp/.jail-copies; test -e .git/modules/sub/config || echo gone`, "gone\n"},
		{"the copy is a link", `f=$(readlink .git/modules/sub/config); ln -sf /etc/passwd $f; head -c 5 .git/modules/sub/config`, "root:"},
		{"remove", `rm .git/modules/sub/config 2>&1 | grep -o busy`, "busy\n"},
		{"replace", `echo evil > x; mv x .git/modules/sub/config 2>&1 | grep -o busy; mv .git/modules/sub y 2>&1 | grep -o busy | head -n 1`, "busy\nbusy\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := testenv.NewWorld(t)
			evSubmodule(t, w)
			configs := []string{filepath.Join(w.Project, ".git/modules/sub/config"), filepath.Join(w.Project, ".git/modules/sub/modules/deep/config")}
			before := mtPicture(t, configs...)
			r := mtRun(t, w, nil, tt.line)
			if r.Stdout != tt.want {
				t.Errorf("%+v", r)
			}
			if d := cmp.Diff(before, mtPicture(t, configs...)); d != "" {
				t.Errorf("changed on the host: %s", d)
			}
			told := strings.Contains(r.Stderr, `not kept ".git/modules/sub/`)
			if told != (tt.name != "remove" && tt.name != "replace") {
				t.Errorf("told: %q", r.Stderr)
			}
			if control := evRun(t, w, "", nil, "bash", "-c", tt.line); tt.name == "git config" && cmp.Equal(before, mtPicture(t, configs...)) {
				t.Errorf("control: %+v", control)
			}
		})
	}
}

// Where git wants to write .git/config. What happens is in the README: a change
// of these words is a change there.
func TestMountsEverydayGitConfig(t *testing.T) {
	mtNeed(t)
	for _, tt := range []struct {
		name, line string
		status     int
		stdout     string
		stderr     []string
		config     bool // it is as it was
	}{
		{"push -u", `git push -u origin main; s=$?; git rev-parse origin/main main | uniq | wc -l; git -C ../remote.git log --format=%s main | head -n 1; exit $s`, 0, "1\nsecond\n", []string{"could not write config file .git/config"}, true},
		{"checkout --track", `git checkout --track origin/topic; s=$?; git branch --show-current; git rev-parse --abbrev-ref @{u} 2>/dev/null; exit $s`, 0, "topic\n", []string{"could not write config file .git/config"}, true},
		{"checkout of a remote branch", `git checkout topic; s=$?; git branch --show-current; exit $s`, 0, "topic\n", []string{"could not write config file .git/config"}, true},
		{"switch -c", `git switch -c x; s=$?; git branch --show-current; exit $s`, 0, "x\n", nil, true},
		{"branch -m", `git checkout -qb a; git branch -m b; s=$?; git branch --show-current; exit $s`, 128, "b\n", []string{"could not write config file .git/config"}, true},
		{"branch -d of one without tracking", `git branch a; git branch -d a; exit $?`, 0, "", []string{"Update of config-file failed"}, true},
		{"branch -d of one with tracking", `git branch -d tracked; s=$?; git branch --list tracked | wc -l; exit $s`, 0, "0\n", []string{"Update of config-file failed"}, true},
		{"config", `git config user.name X; exit $?`, 4, "", []string{"could not write config file .git/config"}, true},
		{"remote add", `git remote add other ../x; exit $?`, 128, "", []string{"could not write config file .git/config"}, true},
		{"submodule add", `git -c protocol.file.allow=always submodule add -q ~/outside-repo s; s=$?; ls -d s 2>/dev/null; exit $s`, 0, "s\n", []string{"could not write config file .git/config"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := testenv.NewWorld(t)
			evShell(`git clone -q --bare . ../remote.git; git -C ../remote.git branch topic main; git remote add origin ~/remote.git; git fetch -q origin
				git branch -q --track tracked origin/main; echo x > f; git add f; git commit -qm second`)(t, w)
			evRepository(t, w, "outside-repo")
			before, _ := os.ReadFile(filepath.Join(w.Project, ".git/config"))
			r := mtRun(t, w, []string{"--write", "../remote.git", "--read", "../outside-repo"}, tt.line)
			after, _ := os.ReadFile(filepath.Join(w.Project, ".git/config"))
			t.Logf("%s: status %d\nstdout %q\nstderr:\n%s", tt.line, r.Status, r.Stdout, evPlain(w, r.Stderr))
			if r.Status != tt.status || !strings.HasSuffix(r.Stdout, tt.stdout) {
				t.Errorf("want status %d and %q", tt.status, tt.stdout)
			}
			for _, s := range tt.stderr {
				if !strings.Contains(r.Stderr, s) {
					t.Errorf("want %q", s)
				}
			}
			if string(before) != string(after) {
				t.Errorf("config has changed: %s", cmp.Diff(string(before), string(after)))
			}
			if left, _ := filepath.Glob(filepath.Join(w.Project, ".git/*.lock")); len(left) > 0 {
				t.Errorf("locks are left: %q", left)
			}
		})
	}
}

func TestMountsEverydayTools(t *testing.T) {
	// What takes longest is the same in both places.
	slow := []string{"npm", "python"}
	mtPlaces(t, func(t *testing.T, private bool) {
		for _, j := range []evJob{
			{
				name: "go", needs: []string{"go"}, setup: evGoModule, ignore: evCaches,
				env: []string{"GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOTOOLCHAIN=local", "GOCACHE=" + goCache(t)},
				steps: [][]string{
					{"go", "mod", "tidy"},
					{"go", "vet", "./..."},
					{"go", "build", "-o", "bin/", "./..."},
					{"bash", "-ec", "go list ./...; gofmt -l .; go version -m bin/tool | grep -c path; ls bin/tool"},
				},
			},
			{name: "make", needs: []string{"make"}, setup: evMakefile, steps: [][]string{
				{"make", "-s"}, {"make", "-s", "-j2", "clean"}, {"make", "-s", "-j2"}, {"make", "SHELL=/bin/bash", "bash"},
			}},
			{name: "gcc", needs: []string{"gcc", "ar"}, setup: evCProgram, steps: [][]string{
				{"gcc", "-Wall", "-O2", "-c", "-o", "a.o", "a.c"},
				{"gcc", "-pipe", "-o", "a.out", "a.o"},
				{"bash", "-ec", "ar rcs lib.a a.o; gcc -shared -fPIC -o a.so a.c; head -c 4 a.out"},
			}},
			{name: "npm", needs: []string{"npm"}, setup: evNodePackage, want: "dep says hello", ignore: evCaches + "|package-lock", loose: true, steps: [][]string{
				{"npm", "install", "--no-audit", "--no-fund", "./dep"},
				{"npm", "run", "hello"},
				{"npm", "pack", "./dep"},
				{"npm", "install", "--no-audit", "--no-fund", "./dep-1.0.0.tgz"},
				{"npm", "ls"},
				{"node", "index.js"},
			}},
			{
				name: "python", needs: []string{"python3"}, want: "pip", loose: true, ignore: evCaches + `|__pycache__`,
				setup: func(t *testing.T, w *testenv.World) {
					testenv.Need(t, "python3-venv", exec.Command("/usr/bin/python3", "-c", "import ensurepip").Run())
				},
				steps: [][]string{
					{"python3", "-m", "venv", ".venv"},
					{".venv/bin/python", "-c", "import sys; print(sys.prefix != sys.base_prefix)"},
					{".venv/bin/python", "-m", "pip", "list", "--disable-pip-version-check"},
					{"bash", "-ec", ". .venv/bin/activate; python -c 'import ssl, sqlite3, ctypes, json, threading, tempfile; print(tempfile.mkstemp()[0])'"},
				},
			},
			{name: "python subprocesses", needs: []string{"python3"}, steps: [][]string{{"python3", "-c", evPythonWork}}},
			{name: "python multiprocessing", needs: []string{"python3"}, steps: [][]string{{"python3", "-c", mtPythonMultiprocessing}}},
			{name: "node subprocesses", needs: []string{"node"}, ignore: evCaches, steps: [][]string{{"node", "-e", evNodeWork}}},
			{name: "shell", steps: [][]string{
				{"bash", "-ec", "ls | wc -l; cat <<< here; cat < <(echo substituted); diff <(echo a) <(echo a); find . -name '*.md'; xargs -n1 echo < README.md; tar -cf x.tar README.md; tar -tf x.tar; mkfifo f; echo through > f & cat f; sort -R README.md; date +%Z; id -u; df . > /dev/null; timeout 5 true; hostname > /dev/null; whoami; rm f"},
			}},
			{name: "network", needs: []string{"python3"}, ignore: evCaches, steps: [][]string{{"python3", "-c", evPythonServer}}},
		} {
			if private && slices.Contains(slow, j.name) {
				continue
			}
			t.Run(j.name, func(t *testing.T) { mtJob(t, j) })
		}
	})
}

const mtPythonMultiprocessing = `
import multiprocessing as m, multiprocessing.shared_memory as s, os
def square(x): return x * x
for how in "fork", "forkserver", "spawn":
    pass
if __name__ == "__main__":
    with m.get_context("fork").Pool(2) as p: print(p.map(square, range(5)))
    x = s.SharedMemory(create=True, size=100); x.buf[0] = 7; print(x.buf[0]); x.close(); x.unlink()
    l = m.Lock()
    with l: print("locked")
    q = m.Queue(); q.put("through"); print(q.get())
`

// The report for machines, and what the jail can do about it.
func TestMountsGuardJSON(t *testing.T) {
	mtNeed(t)
	w := testenv.NewWorld(t)
	file := filepath.Join(w.Outside, "guard.json")
	r := mtRun(t, w, []string{"--guard-json", file}, `git init -q new; echo x > .git/commondir; rm -f ../outside/guard.json; echo evil > ../outside/guard.json; echo end`)
	if !strings.Contains(r.Stdout, "end") {
		t.Errorf("%+v", r)
	}
	text, err := os.ReadFile(file)
	must(t, err)
	if strings.Contains(string(text), "evil") {
		t.Errorf("the jail wrote the report: %s", text)
	}
	for _, want := range []string{`"path": ".git/commondir"`, `"path": "new/.git"`, `"what": "new"`, `"version": 1`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	for _, tt := range []struct{ file, want string }{
		{"guard.json", "lies where the jail may write"}, {filepath.Join(w.Home, "none/x"), "no such file"}, {"/", "is a directory"},
	} {
		r := evRun(t, w, "", nil, append(mtJailed(t, "--guard-json", tt.file), "bash", "-c", "echo ran")...)
		if r.Status != 125 || !strings.Contains(r.Stderr, tt.want) || r.Stdout != "" {
			t.Errorf("%+v", r)
		}
	}
	if r := evRun(t, w, "", nil, append(mtJailed(t, "--waive", "mounts", "--guard-json", file), "bash", "-c", "echo ran")...); r.Status != 125 || !strings.Contains(r.Stderr, "without mounts") {
		t.Errorf("%+v", r)
	}
}

// What SECURITY.md accepts: it can't be held, so each is named at the end.
func TestMountsAcceptedIsNamed(t *testing.T) {
	mtNeed(t)
	for _, tt := range []struct{ name, line, told string }{
		{"commondir", `cp -r .git eg; echo $PWD/eg > .git/commondir`, `new ".git/commondir" (git)`},
		{"a repository inside", `git init -q vendor/x; git -C vendor/x config core.fsmonitor evil`, `new "vendor/x/.git" (git)`},
		{"a bare one", `mkdir -p docs/d/objects docs/d/refs; echo ref: refs/heads/main > docs/d/HEAD; echo '[core] fsmonitor = evil' > docs/d/config`, `new "docs/d" (git)`},
		{"a module", `mkdir -p .git/modules/m m; cp -r .git/HEAD .git/refs .git/objects .git/config .git/modules/m; echo gitdir: ../.git/modules/m > m/.git`, `new ".git/modules/m/config" (git)`},
		{"history", `c=$(git commit-tree HEAD^{tree} -m forged); echo $c > .git/refs/heads/main`, `rewritten ".git/refs/heads/main" (git history`},
		{"no news", `git commit -q --allow-empty -m x; git checkout -q -b y; git commit -q --amend --allow-empty -m z; git branch -f main HEAD; git tag v1; git gc -q; git rebase -q main; git stash -q`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := testenv.NewWorld(t)
			r := mtRun(t, w, nil, tt.line+"; echo end")
			if r.Stdout != "end\n" || !strings.Contains(r.Stderr, tt.told) || tt.told == "" && r.Stderr != "" {
				t.Errorf("%+v", r)
			}
		})
	}
}
