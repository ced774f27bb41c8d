package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

// cliReads tells whether the jail reads the file outside.
func cliReads(t *testing.T, w *testenv.World, words ...string) bool {
	t.Helper()
	r := w.Jail(t, append(words, "--", "cat", filepath.Join(w.Outside, "keep"))...)
	if r.Status > 1 {
		t.Errorf("%q: %+v", words, r)
	}
	return r.Stdout == "keep\n"
}

const cliReadRules = "version = 1\n[files]\nread = [\"../outside\"]\n"

func TestCLIUserFile(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		env  []string
	}{
		"usual place":         {".config/jail/jail.toml", nil},
		"XDG_CONFIG_HOME":     {"elsewhere/jail/jail.toml", []string{"XDG_CONFIG_HOME=HOME/elsewhere"}},
		"relative is ignored": {".config/jail/jail.toml", []string{"XDG_CONFIG_HOME=elsewhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := testenv.NewWorld(t)
			for i := range tt.env {
				tt.env[i] = strings.Replace(tt.env[i], "HOME/", w.Home+"/", 1)
			}
			// The user's waiver counts, so that no flag is needed.
			w.WriteFile(t, filepath.Join(w.Home, tt.file), "version = 1\nwaive = [\"mounts\"]\n[files]\nread = [\"~/outside\"]\n")
			r := cliRun(t, w, tt.env, "--", "cat", filepath.Join(w.Outside, "keep"))
			if r != (testenv.Result{Stdout: "keep\n"}) {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestCLIRulesFlag(t *testing.T) {
	w := testenv.NewWorld(t)
	w.WriteFile(t, filepath.Join(w.Home, "r.toml"), cliReadRules)
	if cliReads(t, w) || !cliReads(t, w, "--rules", "../r.toml") || !cliReads(t, w, "--rules", filepath.Join(w.Home, "r.toml")) {
		t.Error("--rules does not decide")
	}
	// It takes the place of the project's file, trusted or not.
	w.WriteFile(t, filepath.Join(w.Project, "jail.toml"), "nonsense\n")
	if !cliReads(t, w, "--rules", "../r.toml") {
		t.Error("the project's file is in the way")
	}
	// A rule file that is named may waive.
	w.WriteFile(t, filepath.Join(w.Home, "w.toml"), "waive = [\"mounts\"]\n")
	if r := cliRun(t, w, nil, "--rules", "../w.toml", "--", "true"); r != (testenv.Result{}) {
		t.Errorf("waiver: %+v", r)
	}
}

func TestCLITrust(t *testing.T) {
	w := testenv.NewWorld(t)
	file := filepath.Join(w.Project, "jail.toml")
	w.WriteFile(t, file, cliReadRules)
	cliRefused(t, w, fmt.Sprintf("%q is not trusted yet", file), "`jail trust`")

	r := cliRun(t, w, nil, "trust")
	if r.Status != 0 || r.Stdout != cliReadRules || !strings.HasPrefix(r.Stderr, fmt.Sprintf("jail: trusted %q, sha256 ", file)) {
		t.Errorf("trust: %+v", r)
	}
	if !cliReads(t, w) {
		t.Error("the trusted file is not used")
	}

	// An agent that edits the file changes nothing but its own next start.
	if r := w.Jail(t, "--", "sh", "-c", "echo '# more' >> jail.toml"); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	cliRefused(t, w, fmt.Sprintf("%q has changed since it was trusted", file), "`jail trust` again")
	w.WriteFile(t, file, cliReadRules)
	if !cliReads(t, w) {
		t.Error("the same bytes again are not used")
	}
	// Removing it sets nobody free, nor does making a repository below it.
	must(t, os.Remove(file))
	cliRefused(t, w, fmt.Sprintf("%q is trusted, but it is not there any more", file), "`jail trust` to forget it")
	w.WriteFile(t, filepath.Join(w.Project, "sub", ".git", "HEAD"), "ref: refs/heads/main\n")
	if r := evRun(t, w, "project/sub", nil, append(evJailed(t), "true")...); r.Status != 125 || !strings.Contains(r.Stderr, "is trusted, but the project here is") {
		t.Errorf("in a repository below: %+v", r)
	}
	if r := cliRun(t, w, nil, "trust"); r.Status != 0 || !strings.Contains(r.Stderr, "forgotten") {
		t.Errorf("forgetting: %+v", r)
	}
	if cliReads(t, w) {
		t.Error("the file that is gone is used")
	}
}

// cliRefused expects that jail does not start with the project's rule file.
func cliRefused(t *testing.T, w *testenv.World, want ...string) {
	t.Helper()
	r := w.Jail(t, "--", "touch", "marker")
	if _, err := os.Stat(filepath.Join(w.Project, "marker")); r.Status != 125 || r.Stdout != "" || err == nil {
		t.Errorf("got %+v, %v", r, err)
	}
	badInput{want: want}.checkMessage(t, r.Stderr)
}

// Trust is given outside. Inside, neither the command nor the file that it
// writes can be had.
func TestCLITrustInside(t *testing.T) {
	w := testenv.NewWorld(t)
	file := filepath.Join(w.Project, "jail.toml")
	config := filepath.Join(w.Home, ".config", "jail")
	evMkdir(t, config)
	w.WriteFile(t, filepath.Join(w.Home, "other", "jail.toml"), cliReadRules)
	evMust(t, w, "other", testenv.JailBin(t), "trust")
	w.WriteFile(t, file, cliReadRules)
	before := evFiles(t, config, "")

	r := evRun(t, w, "", nil, append(badNested(t, 1, testenv.JailBin(t)), "trust")...)
	if r.Status != 125 { // the untrusted file itself
		t.Errorf("got %+v", r)
	}
	rules := filepath.Join(w.Home, "empty.toml")
	w.WriteFile(t, rules, "version = 1\n")
	inside := evJailed(t, "--rules", rules, "--exec", testenv.JailBin(t))
	r = evRun(t, w, "", nil, append(inside, testenv.JailBin(t), "trust")...)
	if r.Status != 1 || !strings.Contains(r.Stderr, "the trust can't be recorded") {
		t.Errorf("got %+v", r)
	}
	badInput{want: []string{"inside a jail nothing can be trusted"}}.checkMessage(t, r.Stderr)
	r = evRun(t, w, "", nil, append(inside, "sh", "-c", `cd "$1"; echo x >> trust.toml; mv trust.toml x; rm -f trust.toml; echo x > jail.toml; echo end`, "sh", config)...)
	if r.Stdout != "end\n" || strings.Count(r.Stderr, "ermission denied") != 4 {
		t.Errorf("got %+v", r)
	}
	if d := cmp.Diff(before, evFiles(t, config, "")); d != "" {
		t.Error(d)
	}
	cliRefused(t, w, "not trusted yet")
}

// Trust is for one file at one place, and for what it says.
func TestCLITrustIsNarrow(t *testing.T) {
	w := testenv.NewWorld(t)
	w.WriteFile(t, filepath.Join(w.Home, "other", "jail.toml"), cliReadRules)
	evMust(t, w, "other", testenv.JailBin(t), "trust")
	w.WriteFile(t, filepath.Join(w.Project, "jail.toml"), cliReadRules)
	cliRefused(t, w, "not trusted yet") // the same bytes elsewhere

	evMust(t, w, "", testenv.JailBin(t), "trust")
	for _, dir := range []string{"other", ""} { // the second did not undo the first
		if r := evRun(t, w, dir, nil, append(evJailed(t), "true")...); r != (testenv.Result{}) {
			t.Errorf("%q: %+v", dir, r)
		}
	}
	w.WriteFile(t, filepath.Join(w.Project, "jail.toml"), "[files]\nraed = []\n")
	r := cliRun(t, w, nil, "trust")
	if r.Status != 1 || r.Stdout != "" || !strings.Contains(r.Stderr, "did you mean files.read?") {
		t.Errorf("a file that is no rule file was trusted: %+v", r)
	}
	if err := os.Remove(filepath.Join(w.Project, "jail.toml")); err != nil {
		t.Fatal(err)
	}
	evMust(t, w, "", testenv.JailBin(t), "trust") // forgets it
	r = cliRun(t, w, nil, "trust")
	if r.Status != 1 {
		t.Errorf("got %+v", r)
	}
	badInput{want: []string{"jail.toml\" does not exist", "jail init"}}.checkMessage(t, r.Stderr)
}

// What init writes changes nothing until somebody does.
func TestCLIInit(t *testing.T) {
	for _, marker := range []string{"", "go.mod", "package.json"} {
		w := testenv.NewWorld(t)
		if marker != "" {
			w.WriteFile(t, filepath.Join(w.Project, marker), "")
		}
		evMkdir(t, filepath.Join(w.Home, ".config", "jail"))
		words := []string{"--waive", "mounts", "--", "claude"} // naming profiles would turn off the choice by command
		before, _ := cliCheck(t, w, nil, words...)
		evMkdir(t, filepath.Join(w.Project, "deep"))
		out := evMust(t, w, "project/deep", testenv.JailBin(t), "init")
		file := filepath.Join(w.Project, "jail.toml")
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(out, fmt.Sprintf("wrote %q\n", file)) || !strings.Contains(out, "jail trust") {
			t.Fatalf("%v, init said %q", err, out)
		}
		cliRefused(t, w, "not trusted yet")
		evMust(t, w, "", testenv.JailBin(t), "trust")
		after, _ := cliCheck(t, w, nil, words...)
		if !slices.Contains(after.Profiles, "claude") {
			t.Errorf("profiles of claude: %q", after.Profiles)
		}
		if d := cmp.Diff(cliButFile(before), cliButFile(after)); d != "" {
			t.Errorf("%q: without the file -, with it +: %s", marker, d)
		}

		r := cliRun(t, w, nil, "init")
		again, _ := os.ReadFile(file)
		if r.Status != 1 || r.Stdout != "" || string(again) != string(text) {
			t.Errorf("a second init: %+v", r)
		}
		badInput{want: []string{fmt.Sprintf("%q exists already", file), "never overwrites"}}.checkMessage(t, r.Stderr)
	}
}

// cliButFile leaves out that the rule file is there now.
func cliButFile(r cliReport) cliReport {
	r.CarveOuts = slices.DeleteFunc(r.CarveOuts, func(c cliCarve) bool {
		return filepath.Base(c.Path) == "jail.toml"
	})
	return r
}

func TestCLIInitLinks(t *testing.T) {
	w := testenv.NewWorld(t)
	evLink(t, filepath.Join(w.Home, "target"), filepath.Join(w.Project, "jail.toml"))
	if r := cliRun(t, w, nil, "init"); r.Status != 1 {
		t.Errorf("through a link: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(w.Home, "target")); err == nil {
		t.Error("init has written through a link")
	}
}

func TestCLIInitReadOnly(t *testing.T) {
	evNeedUser(t)
	w := testenv.NewWorld(t)
	evMkdir(t, filepath.Join(w.Home, "locked"))
	evChmod(t, filepath.Join(w.Home, "locked"), 0o500)
	r := evRun(t, w, "locked", nil, testenv.JailBin(t), "init")
	if r.Status != 1 || r.Stdout != "" {
		t.Errorf("got %+v", r)
	}
	badInput{want: []string{"locked/jail.toml", "permission denied"}}.checkMessage(t, r.Stderr)
}
