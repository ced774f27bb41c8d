package cli

import (
	"bytes"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

var update = flag.Bool("update", false, "write packaging anew")

// Every flag that a usage text has is taken, with a value if it says so; so is
// what "[flags]" stands for.
func TestFlagsAreTaken(t *testing.T) {
	a := app{}
	seen := 0
	for _, name := range append([]string{""}, a.names()...) {
		for _, f := range a.flags(name) {
			if f.name == "--version" {
				continue // it is not followed by anything
			}
			args := []string{f.name}
			switch f.value {
			case "":
			case "LIST":
				args = append(args, "mounts,seal")
			default:
				args = append(args, "x")
			}
			if args = append(args, "--help"); name != "" {
				args = append([]string{name}, args...)
			}
			seen++
			var errs bytes.Buffer
			if status := Main("v", args, io.Discard, &errs); status != statusOK || f.text == "" {
				t.Errorf("%q: %d, %s (%q)", args, status, errs.String(), f.text)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d flags were read", seen)
	}
}

// Every flag that the source takes stands in a usage text.
func TestFlagsAreWritten(t *testing.T) {
	a := app{}
	var written []string
	for _, name := range append([]string{""}, a.names()...) {
		written = append(written, flagNames(a.flags(name))...)
	}
	files, err := filepath.Glob("*.go")
	must(t, err)
	taken := regexp.MustCompile(`fs\.(?:Func|[A-Z]\w*Var)\((?:&[\w.]+, )?"([\w-]+)"|"([\w-]+)": +&o\.flags`)
	found := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		must(t, err)
		for _, m := range taken.FindAllStringSubmatch(string(text), -1) {
			flag := "-" + m[1] + m[2]
			if len(flag) > 2 {
				flag = "-" + flag
			}
			if found++; !slices.Contains(written, flag) {
				t.Errorf("%s: %s is in no usage text", name, flag)
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d flags were found", found)
	}
}

// Every command has its place in the list of commands, and an order of parts.
func TestUsageTexts(t *testing.T) {
	a := app{}
	for _, name := range a.names() {
		if a.about(name) == "" {
			t.Errorf("jail help does not list %s", name)
		}
	}
	for _, c := range a.pages() {
		if !strings.HasPrefix(synopsis(c.usage), strings.TrimSpace("jail "+c.name)) || !strings.Contains(c.usage, "\nExit status: ") && !strings.Contains(c.usage, " Exit status: ") || !strings.Contains(c.usage, "\nExample") {
			t.Errorf("the text of %q lacks something", c.name)
		}
		for line := range strings.Lines(c.usage) {
			if len(line) > 101 {
				t.Errorf("%q is long", line)
			}
		}
	}
	want := []flagText{{"--rules", "FILE", "of FILE instead of the project's jail.toml"}, {"--update", "", "replace a lock file that says something else"}}
	if got := a.flags("lock"); !slices.Equal(want, got[:2]) {
		t.Errorf("%+v", got)
	}
}

// packaged are the files in packaging that are made of the usage texts and of the
// format of rule files.
func packaged() map[string][]string {
	return map[string][]string{
		"jail.1": {"man"}, "jail.schema.json": {"schema"},
		"jail.bash": {"completion", "bash"}, "_jail": {"completion", "zsh"}, "jail.fish": {"completion", "fish"},
	}
}

// What packages bring along is what jail prints (make generated).
func TestPackaged(t *testing.T) {
	for name, args := range packaged() {
		path := filepath.Join("../packaging", name)
		var out, errs bytes.Buffer
		if status := Main("v", args, &out, &errs); status != statusOK || errs.Len() > 0 {
			t.Fatalf("%q: %d %s", args, status, errs.String())
		}
		if *update {
			must(t, os.WriteFile(path, out.Bytes(), 0o644))
		}
		have, err := os.ReadFile(path)
		must(t, err)
		if d := cmp.Diff(string(have), out.String()); d != "" {
			t.Errorf("%s (make generated):\n%s", path, d)
		}
	}
}

// The manual page is read without a warning, and says what the help says.
func TestManualPage(t *testing.T) {
	testenv.NeedProgram(t, "groff")
	cmd := exec.Command("groff", "-man", "-ww", "-Tutf8", "-P-cbou", "-rLL=200n", "../packaging/jail.1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		t.Fatalf("%v: %s", err, errs.String())
	}
	text := strings.Join(strings.Fields(string(out)), " ")
	for _, c := range (app{}).pages() {
		for _, e := range entries(c.usage) {
			if want := strings.TrimSpace(e.name+" "+e.value) + " " + e.text; !strings.Contains(text, want) {
				t.Errorf("the page of %q lacks %q", c.name, want)
			}
		}
		for form := range strings.SplitSeq(forms(c.usage), "\n") {
			if !strings.Contains(text, form) {
				t.Errorf("%q is not there", form)
			}
		}
	}
}

// What a shell offers for words that are being written. The last is not complete.
func TestCompletion(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "rules.toml"), nil, 0o644))
	for _, tt := range []struct {
		words string
		want  []string // among others
		not   []string
	}{
		{"che", []string{"check"}, []string{"--read", "init"}},
		{"--pro", []string{"--profile", "--protect"}, []string{"--read"}},
		{"--profile cla", []string{"claude"}, []string{"codex", "check"}},
		{"--waive mo", []string{"mounts"}, []string{"ports"}},
		{"--rules rul", []string{"rules.toml"}, nil},
		{"check --js", []string{"--json"}, nil},
		{"check --keep", nil, []string{"--keep-running"}},
		{"lock --up", []string{"--update"}, nil},
		{"log --fo", []string{"--follow"}, []string{"--profile"}},
		{"completion z", []string{"zsh"}, []string{"bash"}},
		{"help pro", []string{"profiles"}, nil},
		{"-- bas", []string{"bash"}, nil},
		{"--read rules.toml bas", []string{"bash"}, nil},
	} {
		for shell, offer := range map[string]func(*testing.T, string, string) []string{"bash": offersBash, "fish": offersFish} {
			t.Run(shell+" "+tt.words, func(t *testing.T) {
				testenv.NeedProgram(t, shell)
				got := offer(t, dir, tt.words)
				for _, w := range tt.want {
					if !slices.Contains(got, w) {
						t.Errorf("%q is not among %q", w, got)
					}
				}
				for _, w := range tt.not {
					if slices.Contains(got, w) {
						t.Errorf("%q is among %q", w, got)
					}
				}
			})
		}
	}
}

func offersBash(t *testing.T, dir, words string) []string {
	t.Helper()
	script, err := filepath.Abs("../packaging/jail.bash")
	must(t, err)
	return offers(t, dir, "bash", "--norc", "-c", `. "$1"; COMP_WORDS=(jail $2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _jail 2>&1; printf '%s\n' "${COMPREPLY[@]}"`, "bash", script, words)
}

func offersFish(t *testing.T, dir, words string) []string {
	t.Helper()
	script, err := filepath.Abs("../packaging/jail.fish")
	must(t, err)
	got := offers(t, dir, "fish", "--no-config", "-c", `source $argv[1]; complete -C "jail $argv[2]"`, script, words)
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], "\t")
	}
	return got
}

func offers(t *testing.T, dir string, argv ...string) []string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8", "TERM=dumb"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// zsh has a completion system that only a terminal can drive: the script is loaded,
// and its tables are looked at.
func TestCompletionZsh(t *testing.T) {
	testenv.NeedProgram(t, "zsh")
	dir := t.TempDir()
	script, err := filepath.Abs("../packaging/_jail")
	must(t, err)
	got := offers(t, dir, "zsh", "-f", "-c", `autoload -Uz compinit; compinit -u -d $1/dump; . $2
_arguments() { print -rl -- "$@" }; _describe() { print -rl -- "$commands[@]" }; _command_names() { print -r -- programs }
print -r -- $_comps[jail]; words=(jail check --js); CURRENT=3; _jail; words=(jail ch); CURRENT=2; _jail; words=(jail --re); CURRENT=2; _jail`, "zsh", dir, script)
	for _, want := range []string{"_jail", "--json[the same for machines; docs/check.md says what each field is]", "programs", "check:show what the rules amount to on this machine", "*--read[PATH and all beneath may be read]:PATH:_files"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among\n%s", want, strings.Join(got, "\n"))
		}
	}
}
