package integration_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

// cliRun runs `jail WORD...` itself, in the project.
func cliRun(t *testing.T, w *testenv.World, env []string, words ...string) testenv.Result {
	t.Helper()
	return evRun(t, w, "", env, append([]string{testenv.JailBin(t)}, words...)...)
}

func TestCLIHelp(t *testing.T) {
	w := testenv.NewWorld(t)
	for _, tt := range []struct {
		words [][]string
		want  []string
	}{
		{[][]string{{"help"}, {"--help"}, {"-h"}, {"help", "help"}, {"help", "--help"}, {"help", "-h"}}, []string{"jail [flags] [--] COMMAND", "Exit status", "Examples:\n", "--waive NAME"}},
		{[][]string{{"help", "check"}, {"check", "--help"}, {"check", "-h"}}, []string{"jail check [flags]", "--json", "Exit status"}},
		{[][]string{{"help", "init"}, {"init", "--help"}}, []string{"jail init\n", "Never overwrites", "Exit status"}},
		{[][]string{{"help", "trust"}, {"trust", "--help"}}, []string{"jail trust\n", "SHA-256", "Exit status"}},
		{[][]string{{"help", "doctor"}, {"doctor", "--help"}}, []string{"jail doctor\n", "Exit status"}},
		{[][]string{{"help", "log"}, {"log", "--help"}}, []string{"jail log [--any] [--json] [--follow]\n", "Exit status", "Examples:\n"}},
		{[][]string{{"help", "gc"}, {"gc", "--help"}}, []string{"jail gc\n", "2 GiB", "Exit status"}},
		{[][]string{{"help", "version"}, {"version", "--help"}}, []string{"version"}},
	} {
		first := cliRun(t, w, nil, tt.words[0]...)
		for _, want := range tt.want {
			if !strings.Contains(first.Stdout, want) {
				t.Errorf("%q lacks %q", tt.words[0], want)
			}
		}
		for _, words := range tt.words {
			r := cliRun(t, w, nil, words...)
			if want := (testenv.Result{Stdout: first.Stdout}); r != want {
				t.Errorf("%q: %s", words, cmp.Diff(want, r))
			}
		}
		for _, line := range strings.Split(first.Stdout, "\n") {
			if len(line) > 80 {
				t.Errorf("%q: more than 80 columns: %q", tt.words[0], line)
			}
		}
	}
}

func TestCLIVersion(t *testing.T) {
	w := testenv.NewWorld(t)
	first := cliRun(t, w, nil, "version")
	if !strings.HasPrefix(first.Stdout, "jail ") || strings.Count(first.Stdout, "\n") != 1 || first.Status != 0 || first.Stderr != "" {
		t.Errorf("got %+v", first)
	}
	if r := cliRun(t, w, nil, "--version"); r != first {
		t.Errorf("--version: %+v, version: %+v", r, first)
	}
}

// Mistakes in the words of jail's own commands.
func TestCLIUsage(t *testing.T) {
	w := testenv.NewWorld(t)
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"help", "chekc"}, `there is no command "chekc"`},
		{[]string{"help", "check", "junk"}, `"junk" is not expected here`},
		{[]string{"help", "--all"}, "--all"},
		{[]string{"check", "--jsno"}, "--jsno"},
		{[]string{"init", "here"}, `"here" is not expected here`},
		{[]string{"trust", "--force"}, "--force"},
		{[]string{"doctor", "all"}, `"all" is not expected here`},
		{[]string{"log", "last"}, `"last" is not expected here`},
		{[]string{"log", "--folow"}, "--folow"},
		{[]string{"gc", "--all"}, "--all"},
		{[]string{"version", "1"}, `"1" is not expected here`},
		{[]string{"check", "--rules", "a", "--rules", "b"}, "--rules is given twice"},
	} {
		r := cliRun(t, w, nil, tt.words...)
		t.Run(strings.Join(tt.words, " "), func(t *testing.T) {
			t.Log(r.Stderr)
			if r.Status != 2 || r.Stdout != "" {
				t.Errorf("status %d, stdout %q", r.Status, r.Stdout)
			}
			badInput{want: []string{tt.want}}.checkMessage(t, r.Stderr)
		})
	}
}

// The words after the command are the command's; a command may have the name of
// one of jail's own.
func TestCLIWords(t *testing.T) {
	w := testenv.NewWorld(t)
	bin := filepath.Join(w.Home, ".local", "bin")
	for _, name := range []string{"check", "init", "help", "--odd"} {
		w.WriteFile(t, filepath.Join(bin, name), "#!/bin/sh\nprintf '%s' \""+name+" itself\"\nprintf ' [%s]' \"$@\"\necho\n")
		evChmod(t, filepath.Join(bin, name), 0o755)
	}
	env := []string{"PATH=" + bin + ":" + evPath()}
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"--waive", "mounts", "--", "check", "--json"}, "check itself [--json]\n"},
		{[]string{"--waive", "mounts", "check", "--json"}, "check itself [--json]\n"},
		{[]string{"--waive=mounts", "--", "init"}, "init itself []\n"},
		{[]string{"-waive", "mounts", "help", "check"}, "help itself [check]\n"},
		{[]string{"--waive", "mounts", "--", "check", "--waive", "x", "--", "-v"}, "check itself [--waive] [x] [--] [-v]\n"},
		{[]string{"--waive", "mounts", "check", "--"}, "check itself [--]\n"},
		{[]string{"--waive", "mounts", "--", "--odd", "-h"}, "--odd itself [-h]\n"},
		{[]string{"--waive", "mounts", "echo", "--help", "--version"}, "--help --version\n"},
		{[]string{"--waive", "mounts", "--", bin + "/check", ""}, "check itself []\n"},
	} {
		if d := cmp.Diff(testenv.Result{Stdout: tt.want}, cliRun(t, w, env, tt.words...)); d != "" {
			t.Errorf("jail %q: %s", tt.words, d)
		}
	}
}

// -v says on standard error what is in force, and changes nothing else.
func TestCLIVerbose(t *testing.T) {
	w := testenv.NewWorld(t)
	r := cliRun(t, w, []string{"MY_SECRET=" + w.SecretText}, "--waive", "mounts", "-v", "--", "echo", "done")
	for _, want := range []string{"/echo in " + w.Project, "profiles [default]", "waived (--waive): ", "MY_SECRET"} {
		if !strings.Contains(r.Stderr, want) {
			t.Errorf("-v lacks %q:\n%s", want, r.Stderr)
		}
	}
	if r.Stdout != "done\n" || r.Status != 0 || strings.Contains(r.Stderr, w.SecretText) {
		t.Errorf("got %+v", r)
	}
}

func TestCLIDoctor(t *testing.T) {
	needMounts(t)
	w := testenv.NewWorld(t)
	r := cliRun(t, w, nil, "doctor")
	for _, want := range []string{"kernel ", "landlock ", "seccomp ", "mounts      private", "yama "} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("doctor lacks %q:\n%s", want, r.Stdout)
		}
	}
	if r.Status != 0 || r.Stderr != "" {
		t.Errorf("status %d, stderr %q", r.Status, r.Stderr)
	}
	if got := strings.Contains(r.Stdout, "running as root"); got != (os.Getuid() == 0) {
		t.Errorf("doctor speaks of root: %v", got)
	}
	if strings.Contains(r.Stdout, "mounts      NO") || strings.Contains(r.Stdout, "--waive mounts") {
		t.Errorf("doctor misses namespaces:\n%s", r.Stdout)
	}
	for _, flags := range [][]string{nil, {"--waive", "mounts"}} {
		if r := cliRun(t, w, nil, append(flags, "--", "true")...); r != (testenv.Result{}) {
			t.Errorf("%q: %+v", flags, r)
		}
	}
}

// In a jail, where no namespaces can be made, doctor tells the truth too. The
// waiver that it names is the one that works.
func TestCLIDoctorInside(t *testing.T) {
	w := testenv.NewWorld(t)
	r := cliInside(t, w, "doctor")
	if r.Status != 0 || r.Stderr != "" || !strings.Contains(r.Stdout, "mounts      NO: ") || !strings.Contains(r.Stdout, "NOT HELD") {
		t.Errorf("got %+v", r)
	}
	if strings.Count(r.Stdout, "jail runs here with: --waive mounts\n") != 1 {
		t.Errorf("doctor names no waiver:\n%s", r.Stdout)
	}
	r = cliInside(t, w, "--", "touch", "marker")
	if r.Status != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, "--waive mounts") || !badShape.MatchString(r.Stderr) {
		t.Errorf("without the waiver: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(w.Project, "marker")); err == nil {
		t.Error("without the waiver the command was started")
	}
	if r := cliInside(t, w, "--waive", "mounts", "--", "true"); r != (testenv.Result{}) {
		t.Errorf("with the waiver: %+v", r)
	}
}

// cliInside runs `jail WORD...` in a jail, which refuses namespaces.
func cliInside(t *testing.T, w *testenv.World, words ...string) testenv.Result {
	t.Helper()
	return evRun(t, w, "", nil, append(badNested(t, 1, testenv.JailBin(t)), words...)...)
}

// cliReport is what scripts read of `jail check --json`.
type cliReport struct {
	Version     int
	Jail        string
	Enforceable bool
	Problem     string
	Hint        string
	Tree        string
	Profiles    []string
	Landlock    int `json:"landlock_abi"`
	Grants      []struct{ Path, Access string }
	CarveOuts   []cliCarve `json:"carve_outs"`
	Promises    []struct {
		ID, Text, Waiver string
		By               []string
		Waived           bool
	}
	Waivers     []struct{ Text, At string }
	Environment struct{ Passed, Dropped []string }
	Command     *struct{ Name, Path, Error, Hint string }
	Notes       []string
}

type cliCarve struct{ Kind, Path, State string }

// cliCheck is `jail check --json` with more words.
func cliCheck(t *testing.T, w *testenv.World, env []string, words ...string) (cliReport, testenv.Result) {
	t.Helper()
	r := cliRun(t, w, env, append([]string{"check", "--json"}, words...)...)
	var rep cliReport
	if err := json.Unmarshal([]byte(r.Stdout), &rep); err != nil {
		t.Fatalf("check --json %q: %v\n%s%s", words, err, r.Stdout, r.Stderr)
	}
	return rep, r
}
