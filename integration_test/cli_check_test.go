package integration_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/internal/testenv"
)

func TestCLICheck(t *testing.T) {
	w := testenv.NewWorld(t)
	env := []string{"MY_SECRET=value-of-it-" + w.SecretText, "EDITOR=" + w.SecretText}

	rep, r := cliCheck(t, w, env, "--waive", "mounts", "--", "cat")
	if r.Status != 0 || r.Stderr != "" || !rep.Enforceable || rep.Version != 1 || rep.Tree != w.Project || rep.Landlock < 1 {
		t.Errorf("status %d, stderr %q, %+v", r.Status, r.Stderr, rep)
	}
	if d := cmp.Diff([]string{"default"}, rep.Profiles); d != "" {
		t.Errorf("profiles: %s", d)
	}
	if rep.Command == nil || rep.Command.Name != "cat" || filepath.Base(rep.Command.Path) != "cat" || rep.Command.Error != "" {
		t.Errorf("command: %+v", rep.Command)
	}
	if !slices.Contains(rep.Environment.Passed, "EDITOR") || !slices.Contains(rep.Environment.Dropped, "MY_SECRET") {
		t.Errorf("environment: %+v", rep.Environment)
	}
	if len(rep.Waivers) != 1 || rep.Waivers[0].Text != "mounts" || rep.Waivers[0].At != "--waive" {
		t.Errorf("waivers: %+v", rep.Waivers)
	}
	if len(rep.Promises) < 10 || len(rep.CarveOuts) == 0 || len(rep.Grants) == 0 {
		t.Errorf("%d promises, %d carve-outs, %d grants", len(rep.Promises), len(rep.CarveOuts), len(rep.Grants))
	}
	for _, words := range [][]string{{"check", "--waive", "mounts"}, {"check", "--json"}, {"check"}} {
		if r := cliRun(t, w, env, words...); strings.Contains(r.Stdout+r.Stderr, w.SecretText) {
			t.Errorf("%q tells the value of a variable:\n%s", words, r.Stdout)
		}
	}
}

// Lists are lists for a script, never null.
func TestCLICheckLists(t *testing.T) {
	w := testenv.NewWorld(t)
	r := cliRun(t, w, nil, "check", "--json", "--waive", "mounts")
	var raw map[string]any
	if err := json.Unmarshal([]byte(r.Stdout), &raw); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"profiles", "grants", "carve_outs", "promises", "waivers", "limits", "missing", "start_options", "notes"} {
		if _, ok := raw[key].([]any); !ok {
			t.Errorf("%s: %v is no list", key, raw[key])
		}
	}
	var promises struct{ Promises []map[string]any }
	if err := json.Unmarshal([]byte(r.Stdout), &promises); err != nil {
		t.Fatal(err)
	}
	for _, p := range promises.Promises {
		if _, ok := p["by"].([]any); !ok {
			t.Errorf("promise %v: by is %v, no list", p["id"], p["by"])
		}
	}
}

func TestCLICheckStatus(t *testing.T) {
	w := testenv.NewWorld(t)
	var rep cliReport
	r := cliInside(t, w, "check", "--json")
	if err := json.Unmarshal([]byte(r.Stdout), &rep); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	if r.Status != 1 || rep.Enforceable || rep.Problem == "" || !strings.Contains(rep.Hint, "--waive mounts") {
		t.Errorf("without the waiver: status %d, problem %q, hint %q", r.Status, rep.Problem, rep.Hint)
	}
	if r := cliInside(t, w, "check"); r.Status != 1 || !strings.Contains(r.Stdout, "NOT ENFORCEABLE") || !strings.Contains(r.Stdout, "--waive mounts") {
		t.Errorf("without the waiver, for people: %+v", r)
	}
	rep, r = cliCheck(t, w, nil, "--waive", "mounts", "--", "no-such-command")
	if r.Status != 1 || rep.Command == nil || rep.Command.Error == "" {
		t.Errorf("command not found: status %d, %+v", r.Status, rep.Command)
	}
	r = cliRun(t, w, nil, "check", "--json", "--read", "nowhere")
	if r.Status != 1 || r.Stdout != "" || !badShape.MatchString(r.Stderr) {
		t.Errorf("bad rules: %+v", r)
	}
}

// What check says is what happens: the access of some paths, and the command.
func TestCLICheckIsTrue(t *testing.T) {
	w := testenv.NewWorld(t)
	flags := []string{"--read", w.Outside, "--waive", "mounts"}
	rep, _ := cliCheck(t, w, nil, flags...)
	access := map[string]string{}
	for _, g := range rep.Grants {
		access[g.Path] = g.Access
	}
	want := map[string]string{w.Project: "read+write", w.Outside: "read", "/usr": "read+exec", "/etc": "read", filepath.Dir(w.Secret): "", w.Home: ""}
	for path, a := range want {
		if access[path] != a {
			t.Errorf("%s: check says %q, want %q", path, access[path], a)
		}
		line := `test -r "$1" && ls "$1" > /dev/null 2>&1 && echo read; touch "$1/.probe" 2>/dev/null && rm "$1/.probe" && echo write; :`
		if access[path] == "read+exec" || path == "/etc" { // root's own, whatever the jail says
			line = `ls "$1" > /dev/null 2>&1 && echo read`
		}
		r := evRun(t, w, "", nil, append(evJailed(t, flags...), "sh", "-c", line, "sh", path)...)
		for _, word := range []string{"read", "write"} {
			if strings.Contains(a, word) != strings.Contains(r.Stdout, word) {
				t.Errorf("%s: check says %q, but inside: %q", path, access[path], r.Stdout)
			}
		}
	}
}

// A name that the jail may choose can't pass for a line of the report.
func TestCLICheckNames(t *testing.T) {
	w := testenv.NewWorld(t)
	dir := "x\n  held     everything\x1b[2J"
	w.WriteFile(t, filepath.Join(w.Home, dir, "head"), "#!/bin/sh\n")
	evChmod(t, filepath.Join(w.Home, dir, "head"), 0o755)
	for _, argv := range [][]string{
		{testenv.JailBin(t), "check", "--waive", "mounts", "--", "head"},
		{testenv.JailBin(t), "check", "--waive", "mounts", "--", "./head"},
		append(evJailed(t), "./head"),
		append(evJailed(t), "head", "-n", "1", "/dev/null"),
	} {
		r := evRun(t, w, dir, []string{"PATH=.:" + evPath()}, argv...)
		if out := r.Stdout + r.Stderr; strings.Contains(out, "\n  held     everything") || strings.Contains(out, "\x1b") {
			t.Errorf("%q: the name makes a line of its own", argv[1:])
		}
	}
}

// What CI asks for is met or named, a line each.
func TestCLICheckRequire(t *testing.T) {
	w := testenv.NewWorld(t)
	check := func(list string) testenv.Result {
		return cliRun(t, w, nil, "check", "--waive", "mounts", "--require", list)
	}
	if r := check("abi>=1"); r.Status != 0 || r.Stderr != "" {
		t.Errorf("met: %+v", r)
	}
	want := "jail: error: required: abi>=200: Landlock's ABI is "
	r := check("abi>=200,mounts,seal,digests,no-waivers")
	if r.Status != 1 || strings.Count(r.Stderr, "\n") != 5 || strings.Count(r.Stderr, "jail: error: required: ") != 5 || !strings.HasPrefix(r.Stderr, want) {
		t.Errorf("not met: status %d\n%s", r.Status, r.Stderr)
	}
	if r := check("abi>=6,walls"); r.Status != 2 || !strings.Contains(r.Stderr, "walls") {
		t.Errorf("unknown: %+v", r)
	}
}

// The digest of a plan is the same at each look, and another for other rules.
func TestCLICheckDigest(t *testing.T) {
	w := testenv.NewWorld(t)
	digest := func(flags ...string) string {
		r := cliRun(t, w, nil, append([]string{"check", "--json", "--waive", "mounts"}, flags...)...)
		var report struct{ Digest string }
		must(t, json.Unmarshal([]byte(r.Stdout), &report))
		return report.Digest
	}
	first := digest()
	if again := digest("--", "cat"); len(first) != 64 || again != first {
		t.Errorf("%q, then %q", first, again)
	}
	if other := digest("--read", w.Outside); other == first {
		t.Error("other rules have the same digest")
	}
}
