package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"jail/rules"
)

// TestMain lets the test binary be a second process that records trust.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CLI_TEST_RECORD"); dir != "" {
		for i := range 40 {
			if err := record(dir, fmt.Sprintf("/p/%s/%d", os.Getenv("CLI_TEST_NAME"), i), sumOf([]byte{byte(i)})); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
		fmt.Println("reached the end")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPrintable(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"text", "a ü 日 \u00a0", "a ü 日 \u00a0"},
		{"lines and tabs", "a\n\tb", "a\n\tb"},
		{"escape sequence", "\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"},
		{"bell, backspace, return", "a\a\b\rb", "a\ufffd\ufffd\ufffdb"},
		{"delete", "a\x7f", "a\ufffd"},
		{"C1 control sequence introducer", "a\u009b31m", "a\ufffd31m"},
		{"NUL", "\x00", "\ufffd"},
		{"not UTF-8", "a\xffb\x9b", "a\ufffdb\ufffd"},
		// Text that is shown in another order than it is read, or not at all:
		// `jail trust` shows a file that an agent may have written.
		{"right-to-left override", "a\u202eb", "a\ufffdb"},
		{"isolates", "\u2066a\u2069", "\ufffda\ufffd"},
		{"line separator", "a\u2028b", "a\ufffdb"},
		{"zero width", "a\u200bb", "a\ufffdb"},
	} {
		if got := printable(tt.in); got != tt.want {
			t.Errorf("%s: want %q, got %q", tt.name, tt.want, got)
		}
	}
}

func TestReadRules(t *testing.T) {
	dir := t.TempDir()
	at := func(n string) string { return filepath.Join(dir, n) }
	must(t, os.WriteFile(at("ok"), []byte("version = 1"), 0o600))
	must(t, os.WriteFile(at("empty"), nil, 0o600))
	must(t, os.WriteFile(at("full"), make([]byte, maxRules), 0o600))
	must(t, os.WriteFile(at("large"), make([]byte, maxRules+1), 0o600))
	must(t, os.Truncate(at("empty"), 0))
	must(t, unix.Mkfifo(at("fifo"), 0o600))
	must(t, os.Symlink("ok", at("link")))
	must(t, os.Symlink("self", at("self")))
	for _, tt := range []struct {
		path string
		size int
		want string
	}{
		{at("ok"), 11, ""},
		{at("link"), 11, ""},
		{at("empty"), 0, ""},
		{at("full"), maxRules, ""},
		{at("large"), 0, "larger than 256 KiB, no rule file is"},
		{at("fifo"), 0, "not a regular file"},
		{dir, 0, "not a regular file"},
		{"/dev/null", 0, "not a regular file"},
		{"/dev/zero", 0, "not a regular file"},
		{"/dev/tty", 0, "*"}, // there may be none
		{"/proc/self/maps", 0, "*"},
		{at("none"), 0, "open " + at("none") + ": no such file or directory"},
		{at("self"), 0, "open " + at("self") + ": too many levels of symbolic links"},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			text, err := readRules(tt.path)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if tt.want != "*" && (got != tt.want || err == nil && len(text) != tt.size) {
				t.Errorf("%s: want %q, got %q and %d bytes", tt.path, tt.want, got, len(text))
			}
			if len(text) > maxRules+1 {
				t.Errorf("%s: %d bytes", tt.path, len(text))
			}
		}()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: hangs", tt.path)
		}
	}
}

func TestTrustRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "conf", "jail")
	known, err := trusted(dir)
	must(t, err)
	if len(known) != 0 {
		t.Errorf("trusted from the start: %v", known)
	}
	odd := "/p/\"quote\" \\ ü\nnew line"
	must(t, record(dir, "/p/a", "1"))
	must(t, record(dir, odd, "2"))
	must(t, record(dir, "/p/a", "3"))
	known, err = trusted(dir)
	must(t, err)
	if d := cmp.Diff(map[string]string{"/p/a": "3", odd: "2"}, known); d != "" {
		t.Error(d)
	}
	for name, want := range map[string]os.FileMode{"": 0o700, trustFile: 0o600} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%q: %v %v", name, fi, err)
		}
	}
	left, err := os.ReadDir(dir)
	must(t, err)
	if len(left) != 1 {
		t.Errorf("files beside the records: %v", left)
	}
	must(t, os.WriteFile(filepath.Join(dir, trustFile), []byte("[[trusted]\n"), 0o600))
	if err := record(dir, "/p/b", "1"); err == nil {
		t.Error("a broken file was overwritten")
	}
	if _, err := trusted(dir); err == nil || !strings.Contains(err.Error(), trustFile) {
		t.Errorf("a broken file: %v", err)
	}
}

// Two processes record at once; nothing is lost, and a reader never sees half.
func TestTrustConcurrently(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "jail")
	var cmds []*exec.Cmd
	var outs []*bytes.Buffer
	for _, name := range []string{"x", "y"} {
		cmd, out := exec.Command("/proc/self/exe"), &bytes.Buffer{}
		cmd.Env = append(os.Environ(), "CLI_TEST_RECORD="+dir, "CLI_TEST_NAME="+name)
		cmd.Stdout, cmd.Stderr = out, out
		must(t, cmd.Start())
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	stop, reads := make(chan struct{}), make(chan int)
	go func() {
		n, most := 0, 0
		for {
			known, err := trusted(dir)
			if err != nil || len(known) < most {
				t.Errorf("reading in between: %d after %d, %v", len(known), most, err)
			}
			n, most = n+1, len(known)
			select {
			case <-stop:
				reads <- n
				return
			default:
			}
		}
	}()
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil || !strings.Contains(outs[i].String(), "reached the end") {
			t.Errorf("%v: %s", err, outs[i])
		}
	}
	close(stop)
	if n := <-reads; n < 10 {
		t.Errorf("read %d times only", n)
	}
	known, err := trusted(dir)
	must(t, err)
	if len(known) != 80 {
		t.Errorf("%d records of 80", len(known))
	}
}

// What `jail init` writes parses, and says what no rule file would say.
func TestTemplateParses(t *testing.T) {
	for _, found := range [][]string{nil, {"go.mod"}, {"package.json", "Makefile"}, rules.Markers()} {
		text := projectTemplate(found)
		must(t, parseable("jail.toml", []byte(text)))
		for _, command := range []string{"", "claude", "opencode", "aider", "sh"} {
			with, err := rules.Parse(rules.Input{
				Sources: []rules.Source{{Kind: rules.ProjectFile, Name: "jail.toml", Text: []byte(text)}}, Markers: found, Command: command,
			})
			must(t, err)
			without, err := rules.Parse(rules.Input{Markers: found, Command: command})
			must(t, err)
			if d := cmp.Diff(without.Profiles(), with.Profiles()); d != "" {
				t.Errorf("%q: %s", command, d)
			}
		}
		var shown []string // in the comment that names the profiles
		for line := range strings.Lines(text) {
			if list, ok := strings.CutPrefix(line, "# profiles = "); ok {
				must(t, json.Unmarshal([]byte(list), &shown))
			}
		}
		if d := cmp.Diff(rules.ChosenBy(found), shown); d != "" {
			t.Error(d)
		}
		// The examples in comments are valid, too.
		plain := regexp.MustCompile(`(?m)^# (\[\[\w+\]\]|\w+ *= .+)$`).ReplaceAllString(text, "$1")
		if err := parseable("jail.toml", []byte(plain)); err != nil || !strings.Contains(plain, "\n[[guide]]\nmatch ") {
			t.Errorf("%v\n%s", err, plain)
		}
	}
}

// An answer that is cut short is no success.
func TestFullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	must(t, err)
	defer full.Close()
	for _, args := range [][]string{{"schema"}, {"man"}, {"completion", "zsh"}, {"help"}, {"version"}} {
		var errs bytes.Buffer
		status := Main("v1", args, full, &errs)
		if want := "jail: error: the answer can't be written: no space left on device\n"; status != 1 || !strings.HasPrefix(errs.String(), want) {
			t.Errorf("%q: status %d, %s", args, status, errs.String())
		}
	}
}

func TestWriteNewNeverOverwrites(t *testing.T) {
	dir := t.TempDir()
	must(t, writeNew(dir+"/a", "x"))
	must(t, os.Symlink(dir+"/made", dir+"/l"))
	for _, name := range []string{"/a", "/l"} {
		if err := writeNew(dir+name, "y"); err == nil || !strings.HasSuffix(err.Error(), "exists already") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, _ := os.ReadFile(dir + "/a"); string(b) != "x" {
		t.Errorf("overwritten: %q", b)
	}
	if _, err := os.Lstat(dir + "/made"); err == nil {
		t.Error("written through a link")
	}
}

// Words, streams and statuses that need no jail.
func TestMainWords(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		status int
		stdout string // prefix
		stderr string
	}{
		{nil, 125, "", "jail: error: no command is given\njail: hint: jail [flags] [--] COMMAND [ARG...], for example: jail -- opencode\n"},
		{[]string{"--"}, 125, "", "jail: error: no command is given\njail: hint: jail [flags] [--] COMMAND [ARG...], for example: jail -- opencode\n"},
		{[]string{"--help"}, 0, "jail [flags] [--] COMMAND", ""},
		{[]string{"-h"}, 0, "jail [flags] [--] COMMAND", ""},
		{[]string{"help"}, 0, "jail [flags] [--] COMMAND", ""},
		{[]string{"help", "check"}, 0, "jail check", ""},
		{[]string{"help", "profiles"}, 0, "Built-in profiles", ""},
		{[]string{"help", "--help"}, 0, "jail [flags] [--] COMMAND", ""},
		{[]string{"help", "check", "junk"}, 2, "", "jail: error: \"junk\" is not expected here\njail: hint: `jail help --help` shows the usage\n"},
		{[]string{"help", "--nonsense"}, 2, "", "jail: error: there is no flag --nonsense\njail: hint: `jail help --help` shows the usage\n"},
		{[]string{"help", "nonsense"}, 2, "", "jail: error: there is no command \"nonsense\"\njail: hint: `jail help` lists them\n"},
		{[]string{"version"}, 0, "jail v1\n", ""},
		{[]string{"--version"}, 0, "jail v1\n", ""},
		{[]string{"check", "--help"}, 0, "jail check", ""},
		{[]string{"trust", "--help"}, 0, "jail trust", ""},
		{[]string{"init", "x"}, 2, "", "jail: error: \"x\" is not expected here\njail: hint: `jail init --help` shows the usage\n"},
		{[]string{"--nonsense"}, 125, "", "jail: error: there is no flag --nonsense\njail: hint: `jail help` lists the flags; a command's own flags come after its name\n"},
		{[]string{"check", "--nonsense"}, 2, "", "jail: error: there is no flag --nonsense\njail: hint: `jail check --help` shows the usage\n"},
		{[]string{"--profle", "go"}, 125, "", "jail: error: there is no flag --profle (did you mean --profile?)\njail: hint: `jail help` lists the flags; a command's own flags come after its name\n"},
		{[]string{"doctor", "--atack"}, 2, "", "jail: error: there is no flag --atack (did you mean --attack?)\njail: hint: `jail doctor --help` shows the usage\n"},
		{[]string{"completion"}, 2, "", "jail: error: no shell is named: bash, zsh or fish\njail: hint: `jail completion --help` shows the usage\n"},
		{
			[]string{"--rules", "a", "--rules", "b", "true"},
			125, "",
			"jail: error: --rules is given twice\njail: hint: `jail help` lists the flags; a command's own flags come after its name\n",
		},
		{
			[]string{"--rules", "", "true"},
			125, "",
			"jail: error: --rules has an empty value\njail: hint: `jail help` lists the flags; a command's own flags come after its name\n",
		},
	} {
		var out, errs bytes.Buffer
		status := Main("v1", tt.args, &out, &errs)
		if status != tt.status || !strings.HasPrefix(out.String(), tt.stdout) || tt.stdout == "" && out.Len() > 0 {
			t.Errorf("%q: status %d, stdout %q", tt.args, status, out.String())
		}
		if d := cmp.Diff(tt.stderr, errs.String()); d != "" {
			t.Errorf("%q:\n%s", tt.args, d)
		}
	}
}

// A command whose name is one of jail's runs after "--".
func TestFlagsEndAtTheCommand(t *testing.T) {
	for _, tt := range []struct {
		args, want []string
	}{
		{[]string{"--read", "a", "ls", "--read", "b"}, []string{"ls", "--read", "b"}},
		{[]string{"--", "check", "-v"}, []string{"check", "-v"}},
		{[]string{"--read=a", "--", "--", "x"}, []string{"--", "x"}},
	} {
		var o options
		got, err := o.parse("jail", tt.args, nil)
		must(t, err)
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Error(d)
		}
	}
}

// Only exact bytes of a project's file are trusted.
func TestProjectRules(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	project := filepath.Join(home, "p")
	must(t, os.Mkdir(project, 0o700))
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Chdir(project)
	said := func() string {
		h, err := host()
		must(t, err)
		src, err := projectRules(h)
		switch {
		case err != nil:
			return strings.ReplaceAll(err.Error(), home, "~")
		case src == nil:
			return "none"
		}
		return "used: " + string(src.Text)
	}
	check := func(want string) {
		t.Helper()
		if got := said(); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
	check("none")
	must(t, os.WriteFile("jail.toml", []byte("version = 1"), 0o600))
	check(`"~/p/jail.toml" is not trusted yet`)
	if status := Main("v", []string{"trust"}, io.Discard, io.Discard); status != 0 {
		t.Fatalf("jail trust: %d", status)
	}
	check("used: version = 1")
	must(t, os.WriteFile("jail.toml", []byte("version = 1\n"), 0o600))
	check(`"~/p/jail.toml" has changed since it was trusted`)
	must(t, os.WriteFile("jail.toml", []byte("version = 1"), 0o600))
	check("used: version = 1")
	must(t, os.WriteFile("jail.toml", []byte("nonsense"), 0o600))
	if status := Main("v", []string{"trust"}, io.Discard, io.Discard); status != 1 {
		t.Errorf("jail trust of nonsense: %d", status)
	}
	check(`"~/p/jail.toml" has changed since it was trusted`)
	must(t, os.Remove("jail.toml"))
	must(t, unix.Mkfifo("jail.toml", 0o600))
	check(`rule file "~/p/jail.toml": not a regular file`)
}
