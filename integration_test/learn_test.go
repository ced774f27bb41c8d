package integration_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

// lnLearn runs a shell line under jail learn and returns the proposal.
func lnLearn(t *testing.T, w *testenv.World, flags []string, line string) string {
	t.Helper()
	argv := append(append([]string{testenv.JailBin(t), "learn"}, flags...), "--", "bash", "-c", line)
	r := w.Run(t, argv...)
	if r.Status != 0 {
		t.Fatalf("status %d\n%s\n%s", r.Status, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

const lnWork = `set -e
~/tools/bin/t
for i in 1 2 3 4 5; do cat ~/outside/$i; done
for i in 1 2 3 4 5 6 7 8; do echo x > ~/.cache/tool/$i; done
mkdir -p ~/.local/share/tool/deep; echo x > ~/.local/share/tool/deep/f
echo x > ~/.toolrc
cp /bin/true ./built; ./built; echo x > made`

// A run that jail refuses is learned from; with the proposal it passes.
func TestLearn(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	w := wyWorld(t)
	for _, n := range []string{"1", "2", "3", "4", "5"} {
		w.WriteFile(t, filepath.Join(w.Outside, n), n)
	}
	w.WriteFile(t, filepath.Join(w.Home, ".toolrc"), "")
	if r := evRun(t, w, "", nil, append(mtJailed(t), "bash", "-c", lnWork)...); r.Status == 0 {
		t.Fatal("nothing of it is refused")
	}
	got := lnLearn(t, w, nil, lnWork)
	want := `version  = 1
profiles = ["default"]

[files]
create = [
  "~/.cache/tool", # bash
  "~/.local/share/tool", # bash, mkdir
]
exec = [
  "~/tools/bin?", # t
]
read = [
  "~/outside?", # cat
]
write = [
  "~/.toolrc?", # bash
]
`
	_, lists, _ := strings.Cut(got, "has done.\n")
	if d := gocmp.Diff(want, lists); d != "" {
		t.Error(d)
	}
	file := wyRules(t, w, got)
	must(t, os.RemoveAll(filepath.Join(w.Home, ".local/share/tool")))
	if r := evRun(t, w, "", nil, append(mtJailed(t, "--rules", file), "bash", "-c", lnWork)...); r.Status != 0 {
		t.Errorf("with the proposal: %d\n%s", r.Status, r.Stderr)
	}
	if again := lnLearn(t, w, []string{"--merge", file}, lnWork); again != "# "+file+" allows all that was used\n" {
		t.Errorf("%s", again)
	}
}

// What a program that was built here writes elsewhere needs two rules.
func TestLearnBuilt(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	testenv.NeedProgram(t, "gcc")
	w := wyWorld(t)
	const line = `set -e
printf '#include <stdio.h>\n#include <stdlib.h>\nint main(int c, char **v) { FILE *f = fopen(v[1], "w"); return !f || fclose(f); }\n' > w.c
gcc -o w w.c; ./w ~/.cache/tool/a; ./w here; sh -c 'exec ./w ~/.cache/tool/b'`
	got := lnLearn(t, w, nil, line)
	if !strings.Contains(got, "[artifact]\nwrite = [\n  \".\", ") || !strings.Contains(got, `  "~/.cache/tool", # w`) {
		t.Errorf("%s", got)
	}
	if r := evRun(t, w, "", nil, append(mtJailed(t, "--rules", wyRules(t, w, got)), "bash", "-c", line)...); r.Status != 0 {
		t.Errorf("with the proposal: %d\n%s\n%s", r.Status, r.Stderr, got)
	}
}

// What a toolchain makes in a new home is what its profile is for, and what it does
// without is nobody's rule; no other toolchain's profile is drawn in.
func TestLearnNewHome(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	w := testenv.NewWorld(t)
	w.WriteFile(t, filepath.Join(w.Project, "Cargo.toml"), "")
	const line = `mkdir ~/.cargo; : > ~/.cargo/.package-cache; (cd; mkdir .config .config/go .config/go/telemetry .config/go/telemetry/local); : > ~/.config/go/telemetry/local/a.count; : > ~/.config/go/telemetry/local/upload.token`
	_, got, _ := strings.Cut(lnLearn(t, w, nil, line), "has done.\n")
	if want := "version  = 1\nprofiles = [\"default\", \"rust\"]\n"; got != want {
		t.Errorf("%s", got)
	}
	must(t, os.RemoveAll(filepath.Join(w.Home, ".config")))
	if got := wyRun(t, w, 1, nil, "mkdir -p ~/.config/go/telemetry/local"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// Learning is no licence: these work without jail, and fail while it learns.
func TestLearnStaysClosed(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	testenv.NeedProgram(t, "python3")
	w := wyWorld(t)
	own := filepath.Join(w.Home, ".config/jail")
	must(t, os.MkdirAll(own, 0o700))
	l, err := net.Listen("unix", filepath.Join(w.Home, "s"))
	must(t, err)
	defer l.Close()
	for name, tt := range map[string]struct{ line, want string }{
		"secret":     {"cat ~/.ssh/id_test", "Permission denied"},
		"its place":  {"mv ~/.ssh ~/ssh2 && mv ~/ssh2 ~/.ssh", "Device or resource busy"},
		"own files":  {"echo > ~/.config/jail/jail.toml && rm ~/.config/jail/jail.toml", "Read-only file system"},
		"hooks":      {"echo > .git/hooks/x && rm .git/hooks/x", "Read-only file system"},
		"namespaces": {"unshare -U true", "Operation not permitted"},
		"socket":     {`python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ["HOME"] + "/s")'`, "PermissionError"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := w.Run(t, "bash", "-c", tt.line); r.Status != 0 {
				t.Fatalf("without jail: %s", r.Stderr)
			}
			r := w.Run(t, testenv.JailBin(t), "learn", "--", "bash", "-c", tt.line+" || exit 7")
			if !strings.Contains(r.Stderr, tt.want) || !strings.Contains(r.Stderr, "ended with status 7") {
				t.Errorf("%s", r.Stderr)
			}
			if regexp.MustCompile(`(?m)^[^#\n]*(ssh|config/jail|hooks)`).MatchString(r.Stdout) {
				t.Errorf("proposed: %s", r.Stdout)
			}
		})
	}
}

// A home is never proposed, whatever is done in it.
func TestLearnNothingTooWide(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	w := wyWorld(t)
	got := lnLearn(t, w, nil, "ls ~ / /home ~/.config >&2; touch ~/a ~/b ~/c ~/d ~/e; rm ~/[a-e]; mkdir ~/.config/gh; touch ~/.config/x1 ~/.config/x2; cat ~/.env.d/token || true")
	for _, line := range strings.Split(got, "\n") {
		if regexp.MustCompile(`^\s+"(~|/|~/\.config|/home)\??"`).MatchString(line) || strings.Contains(strings.TrimLeft(line, " "), `"~/.config/gh`) {
			t.Errorf("proposed: %s\nin %s", line, got)
		}
	}
}

// Rules that no run used are listed, those that one used are not.
func TestLearnUnused(t *testing.T) {
	mtNeed(t)
	mtElsewhere(t)
	w := wyWorld(t)
	w.WriteFile(t, filepath.Join(w.Outside, "used"), "")
	flags := []string{"--read", w.Outside, "--read", filepath.Join(w.Home, "tools")}
	r := w.Run(t, append([]string{testenv.JailBin(t), "learn", "--unused"}, flags...)...)
	if r.Status != 1 || !strings.Contains(r.Stderr, "no run was recorded") {
		t.Errorf("before: %+v", r)
	}
	lnLearn(t, w, flags, "cat ~/outside/used")
	r = w.Run(t, append([]string{testenv.JailBin(t), "learn", "--unused"}, flags...)...)
	if r.Status != 0 || strings.Contains(r.Stdout, w.Outside+" ") || !strings.Contains(r.Stdout, filepath.Join(w.Home, "tools")) {
		t.Errorf("%s%s", r.Stdout, r.Stderr)
	}
	// What can't be taken out of a profile is not listed; a profile can.
	if strings.Contains(r.Stdout, "/dev/full") {
		t.Errorf("%s", r.Stdout)
	}
	r = w.Run(t, testenv.JailBin(t), "learn", "--unused", "--profile", "default", "--profile", "java")
	if want := "recorded runs: 1; rules that none of them used:\n  all grants of profile \"java\"\n"; r.Stdout != want {
		t.Errorf("%s%s", r.Stdout, r.Stderr)
	}
}
