package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
)

// Limits keep their order, and a list that is empty is a list.
func TestReportLimits(t *testing.T) {
	p := plan.Plan{Limits: []plan.Limit{{Name: "open_files", Value: 64}, {Name: "cpu", Value: 3}, {Name: "memory", Value: 1 << 33}}}
	for range 20 {
		r := newReport("v", p, "")
		want := "\nlimits of each process\n  open_files   64\n  cpu          3\n  memory       8589934592\n"
		if text := r.text("/h"); !strings.Contains(text, want) {
			t.Fatalf("lacks %q:\n%s", want, text)
		}
		got, err := json.Marshal(r.Limits)
		must(t, err)
		if d := cmp.Diff(`[{"name":"open_files","value":64},{"name":"cpu","value":3},{"name":"memory","value":8589934592}]`, string(got)); d != "" {
			t.Fatal(d)
		}
	}
	empty, err := json.Marshal(newReport("v", plan.Plan{}, "").Limits)
	must(t, err)
	if string(empty) != "[]" {
		t.Errorf("no limits are %s", empty)
	}
}

// A name can't make a line of the report.
func TestReportLines(t *testing.T) {
	const odd = "a\n  held     everything"
	r := newReport("v", plan.Plan{
		Tree: plan.Tree{Root: odd, Notes: []string{odd}}, Env: []string{odd + "=1"}, Dropped: []string{odd},
		Missing: []plan.Missing{{Text: odd}}, Carves: []plan.Carve{{Path: odd, Reached: plan.Write}},
		Promises: []plan.Promise{{ID: "x", Text: "x", Lost: []string{odd}}},
	}, "")
	if text := r.text("/h"); strings.Contains(text, "\n  held") {
		t.Error(text)
	}
}
