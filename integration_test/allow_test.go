package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jail/internal/testenv"
)

// allowing writes a rule file with an allow list and returns a way to run it.
func allowing(t *testing.T, w *testenv.World, list, more string) func(words ...string) testenv.Result {
	t.Helper()
	rules := filepath.Join(w.Home, "rules.toml")
	w.WriteFile(t, rules, "version = 1\nprofiles = [\"default\"]\n[commands]\nallow = ["+list+"]\n"+more)
	env := append(w.Env(), "loader="+loader(t))
	return func(words ...string) testenv.Result {
		return w.RunIn(t, w.Project, env, append([]string{testenv.JailBin(t), "--rules", rules, "--env", "loader"}, words...)...)
	}
}

// TestAllowedCommands: the list and what comes with it runs; nothing else does,
// whatever the loader is told.
func TestAllowedCommands(t *testing.T) {
	needLayers(t)
	testenv.NeedProgram(t, "bash")
	for _, flags := range layers() {
		w := testenv.NewWorld(t)
		jail := allowing(t, w, `"bash", "cat", "git"`, "")
		run := func(script string) testenv.Result {
			return jail(append(flags, "--", "bash", "-c", script)...)
		}
		if r := run(`cat README.md; git log --oneline | cat; echo x > f; git add f; git commit -qm two; git status -s`); r.Status != 0 || !strings.Contains(r.Stdout, "# project\n") || strings.Contains(r.Stderr, "denied") {
			t.Errorf("%q: honest work: %+v", flags, r)
		}
		if r := run(`/proc/self/exe -c 'echo again'; sh -c 'echo helper of git'`); r.Stdout != "again\nhelper of git\n" {
			t.Errorf("%q: self and helper: %+v", flags, r)
		}
		for _, script := range []string{
			`ls`, `/usr/bin/ls`, `/bin/ls`, `env true`, `exec -a cat /usr/bin/ls`, `echo ls | bash`, `exec 9< /usr/bin/ls`, `cat /usr/bin/ls > ls`,
			`"$loader" /usr/bin/ls`, `"$loader" "$(echo /usr/lib/*/*/*utempter* /usr/bin/ls | { read -r a b; echo "$a"; })"`,
			`cat /usr/bin/ls > x; "$loader" ./x`, `git -c alias.x='!ls' x`, `/proc/self/root/usr/bin/ls`,
			`printf '#!/bin/ls\n' > s; git -c core.hooksPath=. -c alias.x='!./s' x; ./s; /usr/bin/ls`,
		} {
			r := run(script + "; echo $? end")
			if !strings.Contains(r.Stdout, " end\n") && !strings.HasPrefix(script, "exec -a") || !strings.Contains(r.Stderr, "ermission denied") {
				t.Errorf("%q %s: %+v", flags, script, r)
			}
			if strings.Contains(r.Stdout, "README.md") {
				t.Errorf("%q %s: ls runs", flags, script)
			}
		}
	}
}

// Every file that an exec tree shows to a jail with a list is read by the loader:
// none of them may be a program that is not on the list.
func TestAllowHidesPrograms(t *testing.T) {
	needLayers(t)
	testenv.NeedProgram(t, "python3")
	w := testenv.NewWorld(t)
	jail := allowing(t, w, `"bash", "python3"`, "")
	r := jail("--waive", "mounts", "--", "python3", "-c", `
import os
for top in ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec", "/usr/local", "/opt"):
    for d, _, files in os.walk(top):
        for f in files:
            p = os.path.join(d, f)
            if os.path.islink(p) or ".so" in f or not os.access(p, os.X_OK):
                continue
            try:
                with open(p, "rb") as h:
                    if h.read(4) == b"\x7fELF":
                        print(p)
            except OSError:
                pass
print("end")`)
	if r.Status != 0 || !strings.HasSuffix(r.Stdout, "end\n") {
		t.Fatalf("%+v", r)
	}
	for line := range strings.Lines(r.Stdout) {
		line = strings.TrimSpace(line)
		allowed := line == "end" || strings.Contains(line, "/python3") || strings.HasSuffix(line, "/bash") || strings.Contains(line, "/ld-linux")
		if !allowed {
			t.Errorf("%s can be read", line)
		}
	}
}

// A refusal names the list and the message; check tells what decides.
func TestAllowRefuses(t *testing.T) {
	needLayers(t)
	w := testenv.NewWorld(t)
	jail := allowing(t, w, `"bash"`, "[[command]]\nname = \"ls\"\nmessage = \"Use the shell's own.\"\n")
	if r := jail("--waive", "mounts", "--", "ls"); r.Status != 126 || !strings.Contains(r.Stderr, "it is not in commands.allow ("+w.Home+"/rules.toml:4)") || !strings.Contains(r.Stderr, "hint: Use the shell's own.") {
		t.Errorf("%+v", r)
	}
	r := w.Run(t, testenv.JailBin(t), "check", "--waive", "mounts", "--rules", w.Home+"/rules.toml", "--", "bash")
	for _, want := range []string{`rules.toml:4: "bash" is allowed`, "upgrades off: what the jail writes never executes", "interpreter "} {
		if r.Status != 0 || !strings.Contains(r.Stdout, want) {
			t.Errorf("status %d, want %q in\n%s%s", r.Status, want, r.Stdout, r.Stderr)
		}
	}
}

// A script that others start through env, a shim, runs its interpreter; what it
// goes on to start must be on the list itself.
func TestAllowShim(t *testing.T) {
	needLayers(t)
	w := testenv.NewWorld(t)
	shims, real := filepath.Join(w.Home, "bin", "tool"), filepath.Join(w.Home, "bin", "versions", "tool")
	w.WriteFile(t, shims, "#!/usr/bin/env bash\nexec "+real+"\n")
	w.WriteFile(t, real, "#!/bin/sh\necho the tool\n")
	evChmod(t, shims, 0o755)
	evChmod(t, real, 0o755)
	if r := allowing(t, w, `"~/bin/tool"`, "")("--waive", "mounts", "--", shims); r.Status != 126 || !strings.Contains(r.Stderr, "versions/tool: Permission denied") {
		t.Errorf("without a rule: %+v", r)
	}
	helper := "[[command]]\nname = \"~/bin/tool\"\nhelpers = [\"~/bin/versions\", \"sh\"]\n"
	if r := allowing(t, w, `"~/bin/tool"`, helper)("--waive", "mounts", "--", shims); r.Stdout != "the tool\n" {
		t.Errorf("with a rule: %+v", r)
	}
}

// A tree below a directory that the jail may write as a whole, as is the private
// /tmp, shows no more of its programs than any other.
func TestAllowInPrivatePlace(t *testing.T) {
	needLayers(t)
	w := testenv.NewWorld(t)
	for _, name := range []string{"bin/listed", "bin/unlisted", "bin/more/unlisted", "bin/lib/unlisted/x"} {
		w.WriteFile(t, filepath.Join(w.Home, name), "#!/bin/cat\n")
		evChmod(t, filepath.Join(w.Home, name), 0o755)
	}
	for _, flags := range layers() {
		jail := allowing(t, w, `"bash", "cat", "~/bin/listed"`, "")
		r := jail(append(flags, "--", "bash", "-c", `~/bin/listed; cd ~/bin; for f in unlisted more/unlisted lib/unlisted/x; do read -r l < $f && echo "read $l"; done; echo end`)...)
		if r.Stdout != "#!/bin/cat\nend\n" {
			t.Errorf("%q: %+v", flags, r)
		}
	}
}

// In a package store every package lies apart, and names the others.
func TestAllowStore(t *testing.T) {
	needLayers(t)
	testenv.NeedProgram(t, "gcc")
	w := testenv.NewWorld(t)
	store, farm := filepath.Join(w.Home, "store"), filepath.Join(w.Home, "farm", "bin")
	for name, text := range map[string]string{
		"two.c": "int two(void) { return 2; }", "one.c": "int two(void); int one(void) { return two() - 1; }",
		"tool.c": "#include <stdio.h>\nint one(void); int main(void) { printf(\"%d\\n\", one()); return 0; }",
	} {
		w.WriteFile(t, filepath.Join(w.Outside, name), text)
	}
	r := w.Run(t, "sh", "-ec", `cd ../outside; s=$0
mkdir -p $s/p1/bin $s/p2/lib $s/p3/lib $s/p4/bin $1
gcc -shared -fPIC -o $s/p3/lib/libtwo.so two.c
gcc -shared -fPIC -o $s/p2/lib/libone.so one.c -L$s/p3/lib -ltwo -Wl,-rpath,$s/p3/lib
gcc -o $s/p1/bin/tool tool.c -L$s/p2/lib -lone -Wl,-rpath,'$ORIGIN/../../p2/lib' -Wl,-rpath-link,$s/p3/lib
cp $s/p1/bin/tool $s/p4/bin/other; ln -s $s/p1/bin/tool $1/tool`, store, farm)
	if r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	jail := allowing(t, w, `"bash", "~/farm/bin/tool"`, "[files]\nexec = [\"~/store\", \"~/farm\"]\n")
	r = jail("--waive", "mounts", "--", "bash", "-c", `~/farm/bin/tool; "$loader" ~/store/p4/bin/other; ~/store/p4/bin/other; echo end`)
	if r.Stdout != "1\nend\n" || strings.Count(r.Stderr, "ermission denied") != 2 {
		t.Errorf("%+v", r)
	}
}

// What `jail lock` writes is enforced, and kept from the jail.
func TestLock(t *testing.T) {
	needLayers(t)
	w := testenv.NewWorld(t)
	tool, rules := filepath.Join(w.Home, "bin", "tool"), filepath.Join(w.Project, "rules.toml")
	w.WriteFile(t, tool, "#!/bin/sh\necho one\n")
	evChmod(t, tool, 0o755)
	w.WriteFile(t, rules, "version = 1\nprofiles = [\"default\"]\n[commands]\nallow = [\"~/bin/tool\", \"sh\"]\n")
	jail := func(words ...string) testenv.Result {
		return w.Run(t, append([]string{testenv.JailBin(t)}, words...)...)
	}
	run := func() testenv.Result { return jail("--waive", "mounts", "--rules", rules, "--", tool) }
	if r := jail("lock", "--rules", rules); r.Status != 0 || !strings.Contains(r.Stdout, "+ ~/bin/tool "+tool+" sha256 ") {
		t.Fatalf("%+v", r)
	}
	text, err := os.ReadFile(filepath.Join(w.Project, "rules.lock"))
	if err != nil || strings.Count(string(text), "[[command]]") != 2 || !strings.Contains(string(text), `path = "`+tool+`"`) {
		t.Fatalf("%v\n%s", err, text)
	}
	if r := run(); r.Stdout != "one\n" {
		t.Errorf("%+v", r)
	}
	w.WriteFile(t, tool, "#!/bin/sh\necho two\n")
	if r := run(); r.Status != 125 || strings.Count(r.Stderr, "  sha256 ") != 2 || !strings.Contains(r.Stderr, "rules.lock:") || !strings.Contains(r.Stderr, "jail lock --update") {
		t.Errorf("changed: %+v", r)
	}
	if r := jail("lock", "--rules", rules); r.Status != 1 || !strings.HasPrefix(r.Stdout, "- ~/bin/tool ") || !strings.Contains(r.Stdout, "\n+ ~/bin/tool ") {
		t.Errorf("without --update: %+v", r)
	}
	if r := jail("lock", "--update", "--rules", rules); r.Status != 0 {
		t.Errorf("%+v", r)
	}
	if r := run(); r.Stdout != "two\n" {
		t.Errorf("updated: %+v", r)
	}
	needMounts(t)
	if r := jail("--rules", rules, "--", "sh", "-c", "echo > rules.lock; echo end"); r.Stdout != "end\n" || !strings.Contains(r.Stderr, "Read-only file system") {
		t.Errorf("the lock can be written: %+v", r)
	}
}

// exampleWithLock copies an example and locks it, as its first lines say.
func exampleWithLock(t *testing.T, w *testenv.World, name string) (rules string) {
	t.Helper()
	text, err := os.ReadFile(example(t, name))
	if err != nil {
		t.Fatal(err)
	}
	rules = filepath.Join(w.Home, "rules", name)
	w.WriteFile(t, rules, string(text))
	if r := w.Run(t, testenv.JailBin(t), "lock", "--rules", rules); r.Status != 0 {
		t.Fatalf("lock: %+v", r)
	}
	return rules
}

// TestExampleReader: it reads and edits, and runs no interpreter but the shell.
func TestExampleReader(t *testing.T) {
	needMounts(t)
	testenv.NeedProgram(t, "python3")
	w := testenv.NewWorld(t)
	rules := exampleWithLock(t, w, "reader.toml")
	r := w.Run(t, testenv.JailBin(t), "--rules", rules, "--", "bash", "-c",
		`cat README.md | sed s/project/Project/ > r && grep -c P r && ls && git add r && git commit -qm r && git log --oneline | grep -c .; python3 -c 1; perl -e 1; echo end`)
	if r.Stdout != "1\nREADME.md\nr\n2\nend\n" || strings.Count(r.Stderr, "Permission denied") < 1 || !strings.Contains(r.Stderr, "python3: Permission denied") {
		t.Errorf("%+v", r)
	}
	r = w.Run(t, testenv.JailBin(t), "--rules", rules, "--", "python3", "-c", "1")
	if r.Status != 126 || !strings.Contains(r.Stderr, "hint: Read and edit only. Say what you would run, and stop.") {
		t.Errorf("%+v", r)
	}
}

// TestExampleStrict: a Go project, with a part in C, is built and committed.
func TestExampleStrict(t *testing.T) {
	needMounts(t)
	testenv.NeedProgram(t, "gcc")
	testenv.NeedProgram(t, "go")
	w := testenv.NewWorld(t)
	rules := exampleWithLock(t, w, "strict.toml")
	w.WriteFile(t, filepath.Join(w.Project, "go.mod"), "module example.org/m\n\ngo 1.21\n")
	w.WriteFile(t, filepath.Join(w.Project, "m.go"), "package main\n\n// int n(void) { return 6 * 7; }\nimport \"C\"\n\nfunc main() { println(C.n()) }\n")
	r := w.Run(t, testenv.JailBin(t), "--rules", rules, "--", "bash", "-c",
		`CGO_ENABLED=1 go build -o m . && go vet . && git add go.mod m.go && git commit -qm built && git log --oneline | wc -l; ./m; factor 15; echo end`)
	if r.Stdout != "2\nend\n" || !strings.Contains(r.Stderr, "./m: Permission denied") || !strings.Contains(r.Stderr, "factor: Permission denied") {
		t.Errorf("%+v", r)
	}
	if r := w.Run(t, "./m"); r.Stderr != "42\n" {
		t.Errorf("what was built does not run outside: %+v", r)
	}
}
