package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jail/internal/testenv"
)

// evNames are names that a directory may have.
func evNames() []string {
	return []string{
		"plain", "sp ace", "new\nline", `double"quote`, "single'quote", "ünïcödé-日本語", "-dash", "--", "glob*?[x]", "$HOME",
		"%s%d", `back\slash`, "#hash", "~", "~tilde", "semi;colon", "co:lon", "com,ma", "bad\xffutf8", "${VAR}", "jail.toml.d", "ends?", "tab\t",
	}
}

// evNameWork goes in a project of any name.
const evNameWork = `pwd; echo text > "$PWD/file"; cat file; git init -q; git add -A; git commit -qm first; git log --format=%s; git status --short`

func TestEverydayProjectNames(t *testing.T) {
	for _, name := range evNames() {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			evJob{
				dir: filepath.Join("projects", name), want: "first",
				setup: func(t *testing.T, w *testenv.World) { evMkdir(t, filepath.Join(w.Home, "projects", name)) },
				steps: [][]string{{"bash", "-ec", evNameWork}},
			}.run(t)
		})
	}
}

func TestEverydayHomeNames(t *testing.T) {
	for _, name := range evNames() {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			w := testenv.NewWorld(t)
			home := filepath.Join(w.Home, name)
			w.WriteFile(t, filepath.Join(home, ".gitconfig"), "[user]\n\tname = Other\n")
			w.WriteFile(t, filepath.Join(home, ".ssh", "key"), w.SecretText)
			w.WriteFile(t, filepath.Join(home, "work", "go.mod"), "module m\n")
			evMkdir(t, filepath.Join(home, ".cache", "go-build"))
			line := `git config user.name; echo x > ~/.cache/go-build/file && cat ~/.cache/go-build/file; cat ~/.ssh/key; echo x > ~/file; :`
			r := evRun(t, w, filepath.Join(name, "work"), []string{"HOME=" + home}, append(evJailed(t), "bash", "-c", line)...)
			if r.Stdout != "Other\nx\n" || r.Status != 0 || r.Stderr == "" {
				t.Errorf("status %d, stdout %q, stderr %q", r.Status, r.Stdout, r.Stderr)
			}
		})
	}
}

// A flag takes a path of any name but those with control characters; what is
// special in rules is written in brackets.
func TestEverydayFlagNames(t *testing.T) {
	for name, flag := range map[string]string{
		"sp ace": "sp ace", `double"quote`: `double"quote`, "ünï": "ünï", "-dash": "-dash", "#hash": "#hash",
		"what?": "what[?]", "star*": "star[*]", "[x]": "[[]x]", "com,ma": "com,ma", "bad\xffutf8": "bad\xffutf8",
	} {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			w := testenv.NewWorld(t)
			evMkdir(t, filepath.Join(w.Home, name))
			work := []string{"sh", "-c", `cat "$1/keep"; echo new > "$2/made"`, "sh", w.Outside, filepath.Join(w.Home, name)}
			r := evRun(t, w, "", nil, append(evJailed(t, "--read", "../outside", "--write", "../"+flag), work...)...)
			if want := (testenv.Result{Stdout: "keep\n"}); r != want {
				t.Errorf("got %+v", r)
			}
			if r := evRun(t, w, "", nil, append(evJailed(t), work...)...); r.Status == 0 {
				t.Error("works without the flags too")
			}
		})
	}
}

func evMkdir(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

// HOME may be a symbolic link, and the working directory may have been reached
// through one.
func TestEverydayLinks(t *testing.T) {
	w := testenv.NewWorld(t)
	link := filepath.Join(filepath.Dir(w.Home), "link")
	evLink(t, w.Home, link)
	w.WriteFile(t, filepath.Join(w.Project, "go.mod"), "module m\n")
	evMkdir(t, filepath.Join(w.Home, ".cache", "go-build"))
	script := `cd "$1"; shift; exec "$@" bash -c '
		pwd; pwd -P; git status --short; git config user.name; echo x > ~/.cache/go-build/file; cat ~/.cache/go-build/file; cat ~/.ssh/id_test ~/outside/keep; echo end'`
	for name, tt := range map[string]struct{ home, dir string }{
		"home":         {link, w.Project},
		"directory":    {w.Home, filepath.Join(link, "project")},
		"both":         {link, filepath.Join(link, "project")},
		"deeper":       {link, filepath.Join(link, "project", ".git")},
		"trailing dot": {link + "/./", w.Project + "/."},
	} {
		t.Run(name, func(t *testing.T) {
			argv := append([]string{"bash", "-c", script, "bash", tt.dir}, evJailed(t)...)
			r := evRun(t, w, "", []string{"HOME=" + tt.home}, argv...)
			logical, real := filepath.Clean(tt.dir), filepath.Join(w.Project, filepath.Base(tt.dir))
			if filepath.Base(tt.dir) != ".git" {
				real = w.Project
			}
			want := logical + "\n" + real + "\n?? go.mod\nTest\nx\nend\n"
			if name == "deeper" { // git status needs a work tree
				want = logical + "\n" + real + "\nTest\nx\nend\n"
			}
			if r.Stdout != want || r.Status != 0 {
				t.Errorf("status %d, stdout %q, want %q, stderr %q", r.Status, r.Stdout, want, r.Stderr)
			}
		})
	}
}

// A large tree is looked into only so far, and what is installed in it not at
// all.
func TestEverydayLargeTree(t *testing.T) {
	evNeedProgram(t, "strace")
	w := testenv.NewWorld(t)
	jailed := append(evJailed(t), "cat", "README.md")
	evMust(t, w, "", jailed...) // each run removes what the last one has left in TMPDIR
	small := evDirReads(t, w, jailed...)
	grow := func(below string, n int) {
		for i := range n {
			evMkdir(t, filepath.Join(w.Project, below, fmt.Sprint(i)))
		}
	}
	grow("node_modules", 100)
	if reads := evDirReads(t, w, jailed...); reads != small {
		t.Errorf("with installed packages directories are read %d times, without %d times", reads, small)
	}
	grow("many", 4000)
	all, reads := evDirReads(t, w, "find", "many"), evDirReads(t, w, jailed...)
	if all < 4000 || reads > all/2 {
		t.Errorf("directories are read %d times; all of them would be %d times", reads, all)
	}
}

// evDirReads counts how often a command reads a part of a directory.
func evDirReads(t *testing.T, w *testenv.World, argv ...string) int {
	t.Helper()
	log := filepath.Join(w.Home, "strace.log")
	evMust(t, w, "", append([]string{"strace", "-f", "-e", "trace=getdents64", "-o", log}, argv...)...)
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "getdents64(")
}
