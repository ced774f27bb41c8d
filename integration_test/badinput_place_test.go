package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jail/internal/testenv"
)

// Rules that contradict each other, or would let a file be written and run.
func TestBadInputProof(t *testing.T) {
	badRun(t, []badInput{
		{
			name:  "write and exec of one path",
			rules: "[files]\nwrite = [\"~/outside\"]\nexec = [\n\"~/outside\"]\n",
			want:  []string{`"HOME/outside" may be written`, "and executed", "HOME/rules.toml:4"},
			flags: []string{"--read", "HOME/outside"},
		},
		{
			name: "write inside exec", rules: "[files]\nexec = [\"~/tools\"]\nwrite = [\n\"~/tools/cache\"]\n",
			setup: badDirs("tools/cache"), want: []string{`"HOME/tools/cache" may be written (HOME/rules.toml:4: "~/tools/cache")`, `executed (HOME/rules.toml:2: "~/tools")`},
		},
		{
			name: "exec inside write", rules: "[files]\nwrite = [\"~/tools\"]\nexec = [\n\"~/tools/bin\"]\n",
			setup: badDirs("tools/bin"), want: []string{`"HOME/tools/bin" may be written (HOME/rules.toml:2: "~/tools")`, `executed (HOME/rules.toml:4: "~/tools/bin")`},
		},
		{
			name: "exec inside the project", flags: []string{"--exec", "bin"}, setup: badDirs("project/bin"),
			want: []string{`"HOME/project/bin" may be written`, `--exec: "bin"`},
		},
		{
			name: "two names by a link", flags: []string{"--exec", "HOME/alias"}, want: []string{`"HOME/outside" may be written`, "executed"},
			setup: func(t *testing.T, w *testenv.World) { evLink(t, w.Outside, filepath.Join(w.Home, "alias")) },
		},
		{
			name: "hard link", setup: badHardLink, want: []string{"HOME/bin/tool", "HOME/project/copy", "hard link"},
		},
		{
			name: "link that an earlier run planted", rules: "[files]\nread = [\"docs\"]\n",
			setup: func(t *testing.T, w *testenv.World) { evInside(t, w, "", "ln -s ../.ssh docs") },
			want:  []string{`HOME/rules.toml:2: "docs" leads to "HOME/.ssh" through the symbolic link "HOME/project/docs"`},
		},
		{
			name: "planted link above", flags: []string{"--exec", "a/b"},
			setup: func(t *testing.T, w *testenv.World) {
				evMkdir(t, filepath.Join(w.Home, "bait/b"))
				evInside(t, w, "", "ln -s ../bait a")
			},
			want: []string{`"a/b" leads to "HOME/bait/b" through the symbolic link "HOME/project/a"`},
		},
		{
			name: "one variable, two values", rules: "[env]\nset = { A = \"1\" }\n",
			setup: func(t *testing.T, w *testenv.World) {
				w.WriteFile(t, filepath.Join(w.Home, ".config/jail/jail.toml"), "version = 1\n[env]\nset = { A = \"2\" }\n")
			},
			want: []string{"HOME/rules.toml:2", `"1"`, `"2"`, "HOME/.config/jail/jail.toml:3"},
		},
		{name: "missing path", flags: []string{"--read", "nowhere"}, want: []string{`--read: "HOME/project/nowhere" does not exist`}},
		{name: "path through a file", flags: []string{"--read", "README.md/x"}, want: []string{"--read: ", "README.md/x"}},
		{
			name: "jail's own files", flags: []string{"--write", "HOME/.config"}, setup: badDirs(".config/jail"),
			want: []string{`--write: "HOME/.config" would let the jail write "HOME/.config/jail"`},
		},
		{name: "home", flags: []string{"--write", "HOME/"}, want: []string{`--write: "HOME`, "where jail keeps its own files"}},
		{name: "root", flags: []string{"--write", "/"}, want: []string{`"/"`}},
	})
}

func badDirs(dirs ...string) func(*testing.T, *testenv.World) {
	return func(t *testing.T, w *testenv.World) {
		for _, dir := range dirs {
			evMkdir(t, filepath.Join(w.Home, dir))
		}
	}
}

func badSecret(t *testing.T, w *testenv.World) {
	w.WriteFile(t, filepath.Join(w.Home, ".cargo", "credentials.toml"), "token\n")
}

func badHardLink(t *testing.T, w *testenv.World) {
	t.Helper()
	w.WriteFile(t, filepath.Join(w.Home, "bin", "tool"), "#!/bin/sh\n")
	if err := os.Link(filepath.Join(w.Home, "bin", "tool"), filepath.Join(w.Project, "copy")); err != nil {
		t.Fatal(err)
	}
}

// Places where no jail starts: the project tree would hold too much.
func TestBadInputPlace(t *testing.T) {
	badRun(t, []badInput{
		{name: "home", dir: ".", want: []string{`"HOME"`, "is your home directory"}},
		{name: "above home", dir: "..", want: []string{`"BASE"`, "contains your home directory"}},
		{name: "root", dir: strings.Repeat("../", 20), want: []string{`"/"`, "is the root of the file system"}},
		{name: "tmp", dir: strings.Repeat("../", 20) + "tmp", want: []string{`"/tmp"`, "is shared by all programs"}},
		{name: "TMPDIR", dir: "../tmp", want: []string{`"BASE/tmp"`, "is shared by all programs"}},
		{name: "keys", dir: ".ssh", want: []string{`"HOME/.ssh"`, "secrets"}},
		{name: "below keys", dir: ".ssh/deep", setup: badDirs(".ssh/deep"), want: []string{"HOME/.ssh/deep", "secrets"}},
		{name: "above keys", dir: ".cargo", setup: badSecret, want: []string{`"HOME/.cargo"`, "secrets"}},
		{name: "jail's own files", dir: ".config/jail", setup: badDirs(".config/jail"), want: []string{"HOME/.config/jail"}},
		{
			name: "home is a repository", dir: "work", setup: func(t *testing.T, w *testenv.World) {
				evMkdir(t, filepath.Join(w.Home, "work"))
				evMust(t, w, ".", "git", "init", "-q")
			}, want: []string{`"HOME"`, "is your home directory"},
		},
		{name: "HOME is relative", env: []string{"HOME=home"}, want: []string{`HOME is "home", not an absolute path`}},
		{name: "HOME is absent", env: []string{"HOME=BASE/nobody"}, flags: []string{"--read", "HOME/.gitconfig", "--read", "~/x"}, want: []string{`"BASE/nobody/x" does not exist`}},
		{name: "HOME is a file", env: []string{"HOME=/etc/passwd"}, flags: []string{"--profile", "go"}, want: []string{"/etc/passwd"}},
		{name: "TMPDIR is absent", env: []string{"TMPDIR=BASE/nowhere"}, want: []string{`"BASE/nowhere"`, "no such file", "set TMPDIR"}},
		{name: "TMPDIR is a file", env: []string{"TMPDIR=BASE/home/.gitconfig"}, want: []string{"HOME/.gitconfig", "TMPDIR"}},
		{name: "TMPDIR is executable", env: []string{"TMPDIR=/usr/bin"}, want: []string{`"/usr/bin"`, "TMPDIR"}},
		{name: "TMPDIR is relative", env: []string{"TMPDIR=nowhere"}, want: []string{`"nowhere"`, "set TMPDIR"}},
	})
}

func TestBadInputReadOnly(t *testing.T) {
	evNeedUser(t)
	badRun(t, []badInput{
		{
			name: "home", flags: []string{"--profile", "opencode"}, setup: func(t *testing.T, w *testenv.World) {
				evChmod(t, w.Home, 0o500)
				t.Cleanup(func() { os.Chmod(w.Home, 0o700) })
			}, want: []string{"HOME/", "permission denied", "make HOME writable"},
		},
		{
			name: "TMPDIR", env: []string{"TMPDIR=BASE/tmp/no"}, setup: func(t *testing.T, w *testenv.World) {
				if err := os.Mkdir(filepath.Join(w.Temp, "no"), 0o500); err != nil {
					t.Fatal(err)
				}
			}, want: []string{"BASE/tmp/no", "permission denied", "TMPDIR"},
		},
	})
}

// HOME is looked up when it is not set; nothing of it needs to be there.
func TestBadInputHomeUnset(t *testing.T) {
	w := testenv.NewWorld(t)
	line := append([]string{"env", "-u", "HOME"}, append(evJailed(t), "sh", "-c", "echo ${HOME-unset}; cat README.md")...)
	if r := evRun(t, w, "", nil, line...); r.Stdout != "unset\n# project\n" || r.Status != 0 {
		t.Errorf("got %+v", r)
	}
}

// A start in a directory that has been removed.
func TestBadInputDirectoryGone(t *testing.T) {
	w := testenv.NewWorld(t)
	gone := filepath.Join(w.Home, "gone")
	evMkdir(t, gone)
	line := append([]string{"bash", "-c", `cd "$1"; rmdir "$1"; shift; exec "$@"`, "bash", gone}, evJailed(t, "--write", w.Outside)...)
	r := evRun(t, w, "", nil, append(line, "touch", filepath.Join(w.Outside, "marker"))...)
	want := testenv.Result{Status: 125, Stderr: "jail: error: the working directory does not exist any more\njail: hint: change to another directory first\n"}
	if _, err := os.Stat(filepath.Join(w.Outside, "marker")); r != want || err == nil {
		t.Errorf("got %+v, %v", r, err)
	}
}
