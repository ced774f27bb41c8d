package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"jail/internal/testenv"
)

func TestBadInputFile(t *testing.T) {
	file := func(f func(path string) error) func(*testing.T, *testenv.World) {
		return func(t *testing.T, w *testenv.World) {
			if err := f(filepath.Join(w.Home, "r.toml")); err != nil {
				t.Fatal(err)
			}
		}
	}
	named := []string{"--rules", "HOME/r.toml"}
	badRun(t, []badInput{
		{name: "missing", flags: named, want: []string{`"HOME/r.toml"`, "no such file"}},
		{name: "empty name", flags: []string{"--rules", ""}, want: []string{"--rules", "empty"}, not: "-rules:"},
		{name: "twice", flags: []string{"--rules", "a", "--rules", "b"}, want: []string{"--rules is given twice"}, not: "invalid value"},
		{
			name: "directory", flags: named, want: []string{`"HOME/r.toml"`, "not a regular file"},
			setup: file(func(path string) error { return os.Mkdir(path, 0o755) }),
		},
		{
			name: "fifo", flags: named, want: []string{`"HOME/r.toml"`, "not a regular file"},
			setup: file(func(path string) error { return syscall.Mkfifo(path, 0o644) }),
		},
		{name: "endless", flags: []string{"--rules", "/dev/zero"}, want: []string{`"/dev/zero"`, "not a regular file"}},
		{name: "terminal", flags: []string{"--rules", "/dev/ptmx"}, want: []string{`"/dev/ptmx"`, "not a regular file"}},
		{
			name: "1 MB", flags: named, want: []string{`"HOME/r.toml"`, "256 KiB"},
			setup: file(func(path string) error {
				return os.WriteFile(path, []byte(strings.Repeat("# comment\n", 1<<17)), 0o644)
			}),
		},
		{
			name: "broken link", flags: named, want: []string{`"HOME/r.toml"`, "no such file"},
			setup: file(func(path string) error { return os.Symlink("nowhere", path) }),
		},
		{
			name: "circle of links", flags: named, want: []string{`"HOME/r.toml"`, "too many levels of symbolic links"},
			setup: file(func(path string) error { return os.Symlink("r.toml", path) }),
		},
		{
			name: "user's file is a directory", want: []string{"HOME/.config/jail/jail.toml", "not a regular file"},
			setup: func(t *testing.T, w *testenv.World) { evMkdir(t, filepath.Join(w.Home, ".config/jail/jail.toml")) },
		},
		{
			name: "trust records are broken", want: []string{"HOME/.config/jail/trust.toml"},
			setup: func(t *testing.T, w *testenv.World) {
				w.WriteFile(t, filepath.Join(w.Home, ".config/jail/trust.toml"), "[[\n")
				w.WriteFile(t, filepath.Join(w.Project, "jail.toml"), "version = 1\n")
			},
		},
	})
}

func TestBadInputUnreadable(t *testing.T) {
	evNeedUser(t)
	badRun(t, []badInput{
		{
			name: "rule file", flags: []string{"--rules", "HOME/r.toml"}, want: []string{`"HOME/r.toml"`, "permission denied"},
			setup: func(t *testing.T, w *testenv.World) {
				path := filepath.Join(w.Home, "r.toml")
				w.WriteFile(t, path, "version = 1\n")
				evChmod(t, path, 0)
			},
		},
		{
			name: "user's file", want: []string{"HOME/.config/jail/jail.toml", "permission denied"},
			setup: func(t *testing.T, w *testenv.World) {
				path := filepath.Join(w.Home, ".config/jail/jail.toml")
				w.WriteFile(t, path, "version = 1\n")
				evChmod(t, path, 0)
			},
		},
	})
}

func evChmod(t testing.TB, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestBadInputText(t *testing.T) {
	badRun(t, []badInput{
		{name: "no TOML", rules: "version = 1\n\nthis is no toml\n", want: []string{"HOME/rules.toml:3: "}},
		{name: "string not closed", rules: "version = 1\n[files]\nread = [\"a]\n", want: []string{"HOME/rules.toml:3: "}},
		{name: "list not closed", rules: "version = 1\n[files]\nread = [\"a\"\n", want: []string{"HOME/rules.toml:"}},
		{name: "key twice", rules: "[files]\nread = []\nread = []\n", want: []string{"HOME/rules.toml:3: ", "read"}},
		{name: "table twice", rules: "[files]\n[files]\n", want: []string{"HOME/rules.toml:2: ", "files"}},
		{name: "NUL", rules: "version = 1\n\x00\n", want: []string{"HOME/rules.toml"}},
		{name: "not UTF-8", rules: "version = 1\n# \xff\xfe\n", want: []string{"HOME/rules.toml"}},
		{name: "binary", rules: "\x7fELF\x02\x01\x01\x00\x00", want: []string{"HOME/rules.toml"}},
		{name: "string for list", rules: "version = 1\n[files]\nread = \"/etc\"\n", want: []string{"HOME/rules.toml:3: ", "files.read"}},
		{name: "number in list", rules: "version = 1\n[files]\nread = [\n\"/etc\",\n7]\n", want: []string{"HOME/rules.toml:", "files.read"}},
		{name: "string for version", rules: "version = \"1\"\n", want: []string{"HOME/rules.toml:1: ", "version"}},
		{name: "string for table", rules: "files = \"x\"\n", want: []string{"HOME/rules.toml:1: ", "files"}},
		{name: "port too large", rules: "[network]\nconnect = [65536]\n", want: []string{"HOME/rules.toml:2: ", "network.connect"}},
		{name: "negative limit", rules: "[limits]\ncpu = -1\n", want: []string{"HOME/rules.toml:2: ", "limits.cpu"}},
		{name: "no memory", rules: "[limits]\nmemory = 100\n", want: []string{"limits.memory", "HOME/rules.toml:2"}},
		{name: "number for variable", rules: "[env]\nset = { A = 1 }\n", want: []string{"HOME/rules.toml:2: ", "env.set"}},
		{name: "version 2", rules: "\nversion = 2\n", want: []string{"HOME/rules.toml:2: ", "version 2"}},
		{name: "unknown key", rules: "version = 1\n[files]\nraed = []\n", want: []string{`HOME/rules.toml:3: unknown key "files.raed"`, "did you mean files.read?"}},
		{name: "unknown table", rules: "version = 1\n[file]\nread = []\n", want: []string{`HOME/rules.toml:2: unknown key "file"`, "did you mean files?"}},
		{name: "key in wrong case", rules: "[files]\nREAD = []\n", want: []string{`HOME/rules.toml:2: unknown key "files.READ"`, "did you mean files.read?"}},
		{name: "both cases", rules: "[files]\nread = []\nRead = []\n", want: []string{`HOME/rules.toml:3: unknown key "files.Read"`}},
		{name: "unknown profile", rules: "profiles = [\n\"default\",\n\"pyhton\"]\n", want: []string{`HOME/rules.toml:3: there is no profile "pyhton"`, "did you mean python?"}},
		{name: "profile like a path", rules: "profiles = [\"../x\"]\n", want: []string{"HOME/rules.toml:1: ", `"../x"`, "opencode"}},
		{name: "unknown waiver", rules: "waive = [\"mount\"]\n", want: []string{`HOME/rules.toml:1: "mount" can't be waived`, "did you mean mounts?"}},
		{name: "waive all", flags: []string{"--waive", "everything"}, want: []string{`--waive: "everything" can't be waived`, "mounts, truncate, ports, signals"}},
		{name: "profile flag", flags: []string{"--profile", "nothing-like-it"}, want: []string{"--profile: ", `"nothing-like-it"`}},
		{name: "built-in's table", rules: "[profile]\nabout = \"mine\"\n", want: []string{"HOME/rules.toml:1: ", `"profile"`}},
	})
}

// What a rule can't mean is refused, not passed over.
func TestBadInputMeaning(t *testing.T) {
	for rules, want := range map[string]string{
		"[commands]\ndeny = [\"no-such-command\"]\n":              `"no-such-command": no such command in PATH`,
		"[commands]\nallow = []\n":                                "commands.allow is empty",
		"[commands]\nallow = [\"/usr/bin\"]\n":                    `"/usr/bin" is a directory, no command`,
		"[commands]\nallow = [\"cat\"]\ndeny = [\"/bin/cat\"]\n":  `"/bin/cat" is denied, and is the same file as "cat"`,
		"[[guide]]\nmatch = \"/bin/git\"\nmessage = \"no\"\n":     `guide.match: "/bin/git" is a path`,
		"[artifact]\nwrite = [\"~/nowhere\"]\n":                   `"~/nowhere" does not exist`,
		"[artifact]\nwrite = [\"/etc\"]\n":                        `artifacts can't be given "/etc"`,
		"[artifact]\nlimits = { cpu = 0 }\n":                      "artifact.limits.cpu: must be at least 1",
		"[network]\nunix = [\"/definitely/not/there\"]\n":         `"/definitely/not/there" does not exist`,
		"[network]\nunix = [\"/etc/passwd\"]\n":                   `"/etc/passwd" is no socket`,
		"[[command]]\nname = \"git\"\nsha256 = \"abc\"\n":         `"abc" is no SHA-256 digest`,
		"[artifact]\nrun = \"yes\"\n":                             `artifact.run: "yes" is not known`,
		"[[guide]]\nmatch = \"\"\nmessage = \"no\"\n":             "match",
		"[network]\nunix = \"all\"\n":                             `network.unix: "all" is not known`,
		"[limits]\ncpu = 0\n":                                     "limits.cpu: must be at least 1",
		"[env]\npass = [\"A B\"]\n":                               `"A B" is not the name of an environment variable`,
		"[env]\nset = { \"A B\" = \"x\" }\n":                      `"A B" is not the name of an environment variable`,
		"[env]\nset = { A = \"${B\" }\n":                          "not closed",
		"[files]\nread = [\"\"]\n":                                "the path is empty",
		"[files]\nread = [\"~other/x\"]\n":                        `"~name" is not supported`,
		"[files]\nread = [\"/etc/*\"]\n":                          "patterns are for",
		"[files]\nread = [\"/a$B\", \"/a${B}\"]\n":                "variables are written ${NAME}",
		"[files]\nhide = [\"a[\"]\n":                              "the pattern is malformed",
		"[files]\nread = [\"${JAIL_TEST_UNSET}/x\"]\n":            "the variable is not set",
		"[files]\nread = [\"a\\u0007b\"]\n":                       "control character",
		"[files]\ncreate = [\"~/x?\"]\n":                          "can't be optional",
		"[files]\nread = [\"/etc\", \"/definitely/not/there\"]\n": `"/definitely/not/there" does not exist`,
		"[files]\ncreate = [\"~/.gitconfig\"]\n":                  `"HOME/.gitconfig" is not a directory`,
		"[files]\nexec = [\"/dev/null\"]\n":                       `"/dev/null" is no file or directory that could be executed`,
	} {
		badInput{name: want, rules: rules, want: []string{want, "HOME/rules.toml:"}}.runNamed(t)
	}
}

func (b badInput) runNamed(t *testing.T) { t.Run(b.name, b.run) }
