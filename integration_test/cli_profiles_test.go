package integration_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

func TestCLIProfilesChosen(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []string
		words []string
		want  []string
	}{
		{"nothing", nil, nil, []string{"default"}},
		{"go", []string{"go.mod"}, nil, []string{"default", "go"}},
		{"workspace", []string{"go.work"}, nil, []string{"default", "go"}},
		{"rust", []string{"Cargo.toml"}, nil, []string{"default", "rust"}},
		{"node", []string{"package.json"}, nil, []string{"default", "node"}},
		{"python", []string{"pyproject.toml"}, nil, []string{"default", "python"}},
		{"java", []string{"pom.xml"}, nil, []string{"default", "java"}},
		{"c", []string{"Makefile"}, nil, []string{"c", "default"}},
		{"several", []string{"go.mod", "package.json", "Makefile"}, nil, []string{"c", "default", "go", "node"}},
		{"agent", nil, []string{"--", "claude"}, []string{"claude", "default"}},
		{"agent by path", nil, []string{"--", "/opt/x/bin/opencode"}, []string{"default", "opencode"}},
		{"agent in a project", []string{"go.mod"}, []string{"--", "codex"}, []string{"codex", "default", "go"}},
		{"agent on another profile", nil, []string{"--", "aider"}, []string{"aider", "default", "python"}},
		{"tool", nil, []string{"--", "npm"}, []string{"default", "node"}},
		{"flag adds", []string{"go.mod"}, []string{"--profile", "rust", "--profile", "go"}, []string{"default", "go", "rust"}},
		{"rules choose", []string{"go.mod"}, []string{"--rules", "../rules.toml"}, []string{"default", "pi"}},
		{"rules choose, flag adds", []string{"go.mod"}, []string{"--rules", "../rules.toml", "--profile", "c"}, []string{"c", "default", "pi"}},
		{"directory of that name", []string{"go.mod/x"}, nil, []string{"default"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := testenv.NewWorld(t)
			w.WriteFile(t, filepath.Join(w.Home, "rules.toml"), "profiles = [\"default\", \"pi\"]\n")
			for _, name := range tt.files {
				w.WriteFile(t, filepath.Join(w.Project, name), "")
			}
			rep, _ := cliCheck(t, w, nil, append([]string{"--waive", "mounts"}, tt.words...)...)
			slices.Sort(rep.Profiles)
			if d := cmp.Diff(tt.want, rep.Profiles); d != "" {
				t.Error(d)
			}
		})
	}
}

// A cache that is there is used; one that is not becomes private to the run,
// and HOME stays as it is.
func TestCLIProfileCaches(t *testing.T) {
	w := testenv.NewWorld(t)
	line := `case "$GOCACHE" in "$TMPDIR"/*) echo private;; esac; d=${GOCACHE:-$HOME/.cache/go-build}; echo x > "$d/file"; cat "$d/file"; stat -c %a "$d"`
	jail := append(evJailed(t, "--profile", "go"), "sh", "-c", line)
	before := evFiles(t, w.Home, "")
	if r := evRun(t, w, "", nil, jail...); r.Stdout != "private\nx\n700\n" || r.Stderr != "" {
		t.Errorf("without a cache: %+v", r)
	}
	if d := cmp.Diff(before, evFiles(t, w.Home, "")); d != "" {
		t.Errorf("HOME has changed: %s", d)
	}
	cache := filepath.Join(w.Home, ".cache", "go-build")
	evMkdir(t, cache)
	if r := evRun(t, w, "", nil, jail...); r.Stdout != "x\n755\n" || r.Stderr != "" {
		t.Errorf("with a cache: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(cache, "file")); err != nil {
		t.Error(err)
	}
}

// Claude's state file lies in HOME itself, where the jail can't write: it is
// copied once, and what the jail makes of the copy stays.
func TestCLIProfileClaude(t *testing.T) {
	w := testenv.NewWorld(t)
	bin := filepath.Join(w.Home, ".local", "bin")
	w.WriteFile(t, filepath.Join(bin, "claude"), "#!/bin/sh\ncat \"$CLAUDE_CONFIG_DIR/.claude.json\"; echo $CLAUDE_CONFIG_DIR; printf '%s' \"$1\" >> \"$CLAUDE_CONFIG_DIR/.claude.json\"\n")
	evChmod(t, filepath.Join(bin, "claude"), 0o755)
	dir := filepath.Join(w.Home, ".claude")
	claude := func(word string) string {
		t.Helper()
		r := evRun(t, w, "", []string{"PATH=" + bin + ":" + evPath()}, append(evJailed(t), "claude", word)...)
		if r.Status != 0 {
			t.Errorf("%+v", r)
		}
		return strings.TrimSuffix(r.Stdout, dir+"\n")
	}
	w.WriteFile(t, filepath.Join(w.Home, ".claude.json"), "first")
	if got := claude(" one"); got != "first" {
		t.Errorf("not seeded: %q", got)
	}
	w.WriteFile(t, filepath.Join(w.Home, ".claude.json"), "second")
	if got := claude(" two"); got != "first one" {
		t.Errorf("overwritten: %q", got)
	}
	if text, _ := os.ReadFile(filepath.Join(w.Home, ".claude.json")); string(text) != "second" {
		t.Errorf("the original is %q", text)
	}
	if fi, err := os.Stat(filepath.Join(dir, ".claude.json")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi, err)
	}
}

// A directory of the user's own choice is kept.
func TestCLIProfileClaudeElsewhere(t *testing.T) {
	w := testenv.NewWorld(t)
	w.WriteFile(t, filepath.Join(w.Home, ".claude.json"), "state")
	dir := filepath.Join(w.Home, ".config", "claude")
	line := `echo $CLAUDE_CONFIG_DIR; cat "$CLAUDE_CONFIG_DIR/.claude.json"; echo x > "$CLAUDE_CONFIG_DIR/new"`
	r := evRun(t, w, "", []string{"CLAUDE_CONFIG_DIR=" + dir}, append(evJailed(t, "--profile", "claude"), "sh", "-c", line)...)
	if r != (testenv.Result{Stdout: dir + "\nstate"}) {
		t.Errorf("got %+v", r)
	}
	if _, err := os.Stat(filepath.Join(w.Home, ".claude")); err == nil {
		t.Error("the usual directory was made")
	}
}

// yarn keeps tokens in its files in HOME; the project's own are read.
func TestCLIProfileYarn(t *testing.T) {
	w := testenv.NewWorld(t)
	for _, name := range []string{".yarnrc", ".yarnrc.yml"} {
		w.WriteFile(t, filepath.Join(w.Home, name), w.SecretText)
		w.WriteFile(t, filepath.Join(w.Project, name), "project\n")
	}
	r := evRun(t, w, "", nil, append(evJailed(t, "--profile", "node"), "sh", "-c", `cat .yarnrc .yarnrc.yml ~/.yarnrc ~/.yarnrc.yml`)...)
	if r.Stdout != "project\nproject\n" || strings.Count(r.Stderr, "Permission denied") != 2 {
		t.Errorf("got %+v", r)
	}
}

// Without ~/.claude.json there is nothing to copy, and claude starts.
func TestCLIProfileClaudeFresh(t *testing.T) {
	w := testenv.NewWorld(t)
	r := evRun(t, w, "", nil, append(evJailed(t, "--profile", "claude"), "sh", "-c", `ls -A "$CLAUDE_CONFIG_DIR"; echo x > "$CLAUDE_CONFIG_DIR/.claude.json"`)...)
	if r != (testenv.Result{}) {
		t.Errorf("got %+v", r)
	}
}

// A step of a workflow gives outputs on; what later steps would execute, and the
// runner's tokens, stay out.
func TestCLIProfileGitHubActions(t *testing.T) {
	w := testenv.NewWorld(t)
	env := []string{"ACTIONS_RUNTIME_TOKEN=" + w.SecretText, "GITHUB_TOKEN=" + w.SecretText, "GITHUB_ACTIONS=true", "GITHUB_REPOSITORY=a/b"}
	for _, name := range []string{"OUTPUT", "STEP_SUMMARY", "ENV", "PATH", "STATE"} {
		file := filepath.Join(w.Home, "runner", "_temp", name)
		w.WriteFile(t, file, "")
		env = append(env, "GITHUB_"+name+"="+file)
	}
	line := `
	echo a=b >> "$GITHUB_OUTPUT"; echo '# done' >> "$GITHUB_STEP_SUMMARY"
	cd "$1"; for f in ENV PATH STATE; do echo X=y >> $f; done; touch new
	env; echo end`
	r := evRun(t, w, "", env, append(evJailed(t, "--profile", "github-actions"), "bash", "-c", line, "bash", filepath.Join(w.Home, "runner", "_temp"))...)
	if !strings.HasSuffix(r.Stdout, "end\n") || strings.Count(r.Stderr, "ermission denied") != 4 {
		t.Errorf("status %d, stderr %q", r.Status, r.Stderr)
	}
	for _, no := range []string{"ACTIONS_RUNTIME_TOKEN", "GITHUB_TOKEN", "GITHUB_ENV", "GITHUB_PATH", w.SecretText} {
		if strings.Contains(r.Stdout, no) {
			t.Errorf("the environment has %s", no)
		}
	}
	if !strings.Contains(r.Stdout, "GITHUB_REPOSITORY=a/b\n") {
		t.Error("GITHUB_REPOSITORY is not passed on")
	}
	for name, want := range map[string]string{"OUTPUT": "a=b\n", "STEP_SUMMARY": "# done\n", "ENV": "", "PATH": "", "STATE": ""} {
		if text, _ := os.ReadFile(filepath.Join(w.Home, "runner", "_temp", name)); string(text) != want {
			t.Errorf("GITHUB_%s has %q", name, text)
		}
	}
}

// Every built-in profile starts a command in a fresh HOME.
func TestCLIProfilesStart(t *testing.T) {
	w := testenv.NewWorld(t)
	r := cliRun(t, w, nil, "--profile", "none-of-them", "--", "true")
	_, list, ok := strings.Cut(strings.TrimSpace(r.Stderr), "profiles are: ")
	if !ok {
		t.Fatalf("no list: %q", r.Stderr)
	}
	for _, name := range strings.Split(list, ", ") {
		w := testenv.NewWorld(t)
		if r := w.Jail(t, "--profile", name, "--", "cat", "README.md"); r != (testenv.Result{Stdout: "# project\n"}) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
