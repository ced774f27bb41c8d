package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jail/internal/testenv"
)

// A way to run the denied program, $denied. It says "15: 3 5" when it runs.
type commandAttack struct {
	name, script string
	needs        string
	words        string // how the refusal shows; absent: "ermission denied"
}

const ran = "15: 3 5"

func commandAttacks() []commandAttack {
	return []commandAttack{
		{name: "name", script: `factor 15`},
		{name: "path", script: `"$denied" 15`},
		{name: "dots and slashes", script: `//usr/./bin/../bin///factor 15`},
		{name: "env", script: `env -S "factor 15"`},
		{name: "exec -a", script: `exec -a ls "$denied" 15`},
		{name: "script", script: `printf '%s 15\n' "$denied" > s && bash s`},
		{name: "pipe to bash", script: `echo factor 15 | bash`},
		{name: "encoded", script: `echo ZmFjdG9yIDE1Cg== | base64 -d | sh`},
		{name: "find -exec", script: `find README.md -exec "$denied" 15 \;`},
		{name: "xargs", script: `echo 15 | xargs factor`},
		{name: "nice", script: `nice timeout 5 factor 15`},
		{name: "awk", script: `awk 'BEGIN { system("factor 15") }'`},
		{name: "perl", script: `perl -e 'exec "factor", "15" or die $!'`, needs: "perl"},
		{name: "python", script: `python3 -c 'import os; os.execv(os.environ["denied"], ["x", "15"])'`, needs: "python3"},
		{name: "make", script: `printf 'all:\n\t@factor 15\n' > M && make -f M`, needs: "make", words: "Error 12"},
		{name: "vim", script: `vim -es -u NONE -c 'call writefile([system("factor 15 2>&1")], "out")' -c 'q!' < /dev/null; cat out; cat out >&2`, needs: "vim"},
		{name: "git alias", script: `git -c alias.x='!factor 15' x`},
		{name: "symbolic link", script: `ln -s "$denied" ls && ./ls 15`},
		{name: "hard link", script: `ln "$tools/factor" hl && ./hl 15`, words: "link"},
		{name: "other name", script: `"$tools/renamed" 15`},
		{name: "copy that was there", script: `"$tools/factor" 15`},
		{name: "copy", script: `cp "$denied" x && ./x 15`},
		{name: "copy by cat", script: `cat < "$denied" > x && chmod +x x && ./x 15`},
		{name: "rename", script: `mv "$tools/moved" "$tools/again" && "$tools/again" 15`, words: "annot move"},
		{name: "loader", script: `"$loader" "$denied" 15`},
		{name: "loader on a copy", script: `"$loader" "$tools/renamed" 15`},
		{name: "root of the process", script: `/proc/self/root"$denied" 15`},
		{name: "descriptor", script: `exec 9< "$denied" && /proc/self/fd/9 15`},
		{name: "working directory", script: `cd /usr/bin && ./factor 15`},
		{name: "memory file", needs: "python3", words: "Function not implemented|ermission denied", script: `python3 -c '
import os
fd = os.memfd_create("x", 0)
os.write(fd, open(os.environ["denied"], "rb").read())
os.execve(fd, ["x", "15"], {})'`},
		{name: "library path", needs: "python3", script: `python3 -c '
import ctypes, os, sys
r = os.fork()
if r == 0:
    os.execvp("factor", ["ls", "15"])
sys.exit(os.waitpid(r, 0)[1])'`},
	}
}

// newTools makes an exec tree with copies of the denied program in it.
func newTools(t *testing.T) (w *testenv.World, env []string) {
	t.Helper()
	testenv.NeedProgram(t, "factor")
	w = testenv.NewWorld(t)
	tools := filepath.Join(w.Home, "tools")
	evMkdir(t, tools)
	denied, err := filepath.EvalSymlinks("/usr/bin/factor")
	testenv.Need(t, "factor", err)
	text, err := os.ReadFile(denied)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"factor", "moved"} {
		if err := os.WriteFile(filepath.Join(tools, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(tools, "factor"), filepath.Join(tools, "renamed")); err != nil {
		t.Fatal(err)
	}
	return w, append(w.Env(), "denied="+denied, "tools="+tools, "loader="+loader(t))
}

// loader is the dynamic loader of this machine; there may be others.
func loader(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/lib*/ld-linux-*.so.*")
	for _, path := range found {
		if exec.Command(path, "--version").Run() == nil {
			return path
		}
	}
	testenv.Need(t, "glibc", os.ErrNotExist)
	return ""
}

const denyFactor = `version = 1
profiles = ["default"]
[files]
exec = ["~/tools"]
[commands]
deny = ["factor"]
[[command]]
name = "factor"
message = "Primes are out of bounds."
`

// TestDeniedCommand runs a denied program in every way that does without jail,
// under Landlock alone and with all layers.
func TestDeniedCommand(t *testing.T) {
	needLayers(t)
	testenv.NeedProgram(t, "bash")
	for _, a := range commandAttacks() {
		t.Run(a.name, func(t *testing.T) { a.check(t) })
	}
}

func (a commandAttack) check(t *testing.T) {
	t.Parallel()
	if a.needs != "" {
		testenv.NeedProgram(t, a.needs)
	}
	w, env := newTools(t)
	if r := w.RunIn(t, w.Project, env, "bash", "-c", a.script); !strings.Contains(r.Stdout, ran) {
		t.Fatalf("control: status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	for _, flags := range layers() {
		w, env := newTools(t)
		rules := filepath.Join(w.Home, "rules.toml")
		w.WriteFile(t, rules, denyFactor)
		argv := append([]string{testenv.JailBin(t), "--rules", rules, "--env", "denied", "--env", "tools", "--env", "loader"}, flags...)
		r := w.RunIn(t, w.Project, env, append(argv, "--", "bash", "-c", a.script+"\necho end; exit 0")...)
		if a.name != "exec -a" && !strings.HasSuffix(r.Stdout, "end\n") {
			t.Errorf("%q: it did not reach its end: %q", flags, r.Stdout)
		}
		if strings.Contains(r.Stdout+r.Stderr, ran) {
			t.Errorf("%q: it runs", flags)
		}
		words := "ermission denied"
		if a.words != "" {
			words = a.words
		}
		if len(flags) > 0 && !regexp.MustCompile(words).MatchString(r.Stderr) { // with mounts a refusal may come sooner
			t.Errorf("%q: want %q, got %s", flags, words, r.Stderr)
		}
	}
}

// layers are the flags for Landlock alone, and for all layers if they are there.
func layers() [][]string {
	out := [][]string{{"--waive", "mounts"}}
	if exec.Command("unshare", "-Urm", "true").Run() == nil {
		out = append(out, nil)
	}
	return out
}

// A refused start says which rule, and what the rules have to say; what is not
// denied runs; a program that is put beside it later does not.
func TestDeniedStart(t *testing.T) {
	needLayers(t)
	w, env := newTools(t)
	rules := filepath.Join(w.Home, "rules.toml")
	w.WriteFile(t, rules, denyFactor)
	jail := func(words ...string) testenv.Result {
		return w.RunIn(t, w.Project, env, append([]string{testenv.JailBin(t), "--waive", "mounts", "--rules", rules}, words...)...)
	}
	r := jail("--", "factor", "15")
	for _, want := range []string{`"factor" is denied (` + rules + `:6)`, "hint: Primes are out of bounds."} {
		if r.Status != 126 || !strings.Contains(r.Stderr, want) {
			t.Errorf("status %d, want %q in %s", r.Status, want, r.Stderr)
		}
	}
	if r := jail("--", filepath.Join(w.Home, "tools", "renamed"), "15"); r.Status != 126 || !strings.Contains(r.Stderr, "copy of") {
		t.Errorf("a copy: status %d, %s", r.Status, r.Stderr)
	}
	if r := jail("--", "seq", "3"); r.Stdout != "1\n2\n3\n" {
		t.Errorf("seq: %+v", r)
	}
	r = w.RunIn(t, w.Project, env, testenv.JailBin(t), "check", "--waive", "mounts", "--rules", rules, "--", "factor")
	for _, want := range []string{"is denied (" + rules + ":6)", "~/tools/renamed", "denied commands are neither executed nor read"} {
		if r.Status != 1 || !strings.Contains(r.Stdout, want) {
			t.Errorf("check: status %d, want %q in\n%s%s", r.Status, want, r.Stdout, r.Stderr)
		}
	}
}

// A name that appears in a split directory after the start is refused.
func TestDeniedLater(t *testing.T) {
	needLayers(t)
	w, env := newTools(t)
	rules, tools := filepath.Join(w.Home, "rules.toml"), filepath.Join(w.Home, "tools")
	w.WriteFile(t, rules, denyFactor)
	w.WriteFile(t, filepath.Join(tools, "old"), "#!/bin/sh\necho old runs\n")
	evChmod(t, filepath.Join(tools, "old"), 0o755)
	// The shell in the jail waits for the file that is made outside.
	cmd := exec.Command(testenv.JailBin(t), "--waive", "mounts", "--rules", rules, "--env", "tools", "--", "bash", "-c",
		`"$tools/old"; until test -e "$tools/new"; do sleep 0.1; done; "$tools/new"; echo end`)
	cmd.Dir, cmd.Env = w.Project, env
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 600 {
			if matches, _ := filepath.Glob(filepath.Join(w.Temp, "jail-tmp-*")); len(matches) > 0 {
				break
			}
			exec.Command("sleep", "0.1").Run()
		}
		exec.Command("sleep", "1").Run()
		exec.Command("cp", "-p", filepath.Join(tools, "old"), filepath.Join(tools, "new")).Run()
	}()
	r := testenv.Do(t, cmd)
	<-done
	if r.Stdout != "old runs\nend\n" || !strings.Contains(r.Stderr, "Permission denied") {
		t.Errorf("%+v", r)
	}
}
