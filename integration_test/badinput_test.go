package integration_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

// A badInput is a way to start jail that must end before the command does.
type badInput struct {
	name   string
	rules  string // text of a rule file that is named with --rules
	setup  func(t *testing.T, w *testenv.World)
	flags  []string // HOME and BASE stand for the world's directories
	argv   []string // touch marker, if empty
	dir    string   // below HOME; the project if empty
	env    []string
	status int      // 125 if 0
	want   []string // what the error says, with HOME and BASE likewise
	not    string   // what it does not say
	exact  string   // all that it says
}

// badShape is a complaint: one error, and how to mend it. Further lines of one
// message are indented.
var badShape = regexp.MustCompile(`^jail: error: [^\n]+\n(  [^\n]+\n)*jail: hint: [^\n]+\n$`)

// badNoise is what libraries and system calls say of themselves.
var badNoise = regexp.MustCompile(`toml: |\b(lstat|openat2?|readlink|mkdir(at)?|getwd|fork/exec|landlock_\w+) |\b(stat|open) [/~.HB]|struct \{|u?int(16|64)|%!|<nil>|&\{|panic|goroutine|runtime error`)

func (b badInput) run(t *testing.T) {
	t.Helper()
	w := testenv.NewWorld(t)
	if b.setup != nil {
		b.setup(t, w)
	}
	if b.rules != "" {
		w.WriteFile(t, filepath.Join(w.Home, "rules.toml"), b.rules)
		b.flags = append([]string{"--rules", "HOME/rules.toml"}, b.flags...)
	}
	before := evFiles(t, w.Home, "")
	r := b.start(t, w)
	got := badPlain(w, r.Stderr)
	t.Logf("status %d\n%s", r.Status, got)
	if want := max(b.status, 125); r.Status != want || r.Stdout != "" {
		t.Errorf("status %d, want %d; stdout %q", r.Status, want, r.Stdout)
	}
	b.checkMessage(t, got)
	if b.exact != "" && got != b.exact {
		t.Errorf("the message differs: %s", cmp.Diff(b.exact, got))
	}
	if d := cmp.Diff(before, evFiles(t, w.Home, "")); d != "" {
		t.Errorf("HOME has changed: %s", d)
	}
}

func (b badInput) start(t *testing.T, w *testenv.World) testenv.Result {
	t.Helper()
	argv := b.argv
	if argv == nil {
		argv = []string{"--", "touch", "HOME/outside/marker", "marker"}
	}
	line := append([]string{testenv.JailBin(t), "--waive", "mounts", "--write", "HOME/outside"}, b.flags...)
	line = append(line, argv...)
	names := strings.NewReplacer("HOME/", w.Home+"/", "BASE/", filepath.Dir(w.Home)+"/")
	for i := range line[3:] {
		line[3+i] = names.Replace(line[3+i])
	}
	env := make([]string, len(b.env))
	for i, kv := range b.env {
		env[i] = strings.Replace(kv, "BASE/", filepath.Dir(w.Home)+"/", 1)
	}
	return evRun(t, w, b.dir, env, line...)
}

func (b badInput) checkMessage(t *testing.T, got string) {
	t.Helper()
	if !badShape.MatchString(got) {
		t.Errorf("the message is not one error and a hint")
	}
	if noise := badNoise.FindString(got); noise != "" {
		t.Errorf("the message has %q", noise)
	}
	for _, want := range b.want {
		if !strings.Contains(got, want) {
			t.Errorf("the message lacks %q", want)
		}
	}
	if b.not != "" && strings.Contains(got, b.not) {
		t.Errorf("the message has %q", b.not)
	}
}

// badPlain undoes the names of one world.
func badPlain(w *testenv.World, s string) string {
	s = strings.ReplaceAll(s, w.Home, "HOME")
	return strings.ReplaceAll(s, filepath.Dir(w.Home), "BASE")
}

func badRun(t *testing.T, all []badInput) {
	t.Helper()
	for _, b := range all {
		t.Run(b.name, b.run)
	}
}

// Some messages word for word: what, where, and how to mend it.
func TestBadInputWords(t *testing.T) {
	badRun(t, []badInput{
		{
			name: "written and executed", rules: "[files]\nread = []\nwrite = [\"~/tools\"]\nexec  = [\n  \"~/tools/bin\",\n]\n", setup: badDirs("tools/bin"),
			exact: `jail: error: HOME/rules.toml:3: "HOME/tools/bin" may be written (HOME/rules.toml:3: "~/tools") and executed (HOME/rules.toml:5: "~/tools/bin")
jail: hint: drop one of the two: what the jail may write it must not execute; with mounts, what is built there runs sealed without a rule
`,
		},
		{
			name: "key", rules: "version = 1\n[files]\nraed = []\n",
			exact: "jail: error: HOME/rules.toml:3: unknown key \"files.raed\"\njail: hint: did you mean files.read?\n",
		},
		{
			name: "home", dir: ".",
			exact: "jail: error: the project tree would be \"HOME\", which is your home directory\njail: hint: change to the directory of one project first\n",
		},
		{
			name: "grant", argv: []string{"--", "HOME/tools/run"}, status: 126, setup: func(t *testing.T, w *testenv.World) {
				w.WriteFile(t, filepath.Join(w.Home, "tools/run"), "#!/bin/sh\n")
				evChmod(t, filepath.Join(w.Home, "tools/run"), 0o755)
			},
			exact: "jail: error: \"HOME/tools/run\" may not be executed: no exec rule reaches it\njail: hint: --exec HOME/tools, or in a rule file: [files] exec = [\"HOME/tools\"]\n",
		},
	})
}

// The table would prove nothing if the command could not do its work.
func TestBadInputControl(t *testing.T) {
	w := testenv.NewWorld(t)
	r := badInput{}.start(t, w)
	for _, path := range []string{filepath.Join(w.Outside, "marker"), filepath.Join(w.Project, "marker")} {
		if _, err := os.Stat(path); err != nil || r != (testenv.Result{}) {
			t.Errorf("%v, %+v", err, r)
		}
	}
}
