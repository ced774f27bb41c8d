package cli

import (
	"strings"
	"testing"

	"jail/plan"
	"jail/rules"
)

func TestRequire(t *testing.T) {
	waived := plan.Plan{
		ABI: 5, Waivers: []rules.Waiver{{Name: "mounts", From: plan.Origin{File: "f", Line: 3}}},
		Promises: []plan.Promise{{ID: "noexec", Waived: true, From: plan.Origin{File: "f", Line: 3}}},
	}
	full := plan.Plan{ABI: 7, Mounts: true}
	for _, tt := range []struct {
		list string
		plan plan.Plan
		want []string // of each: "" if it is met
	}{
		{"abi>=5", waived, []string{""}},
		{"abi>=6,mounts", waived, []string{"Landlock's ABI is 5 here", "the layer is waived (f:3)"}},
		{"seal, digests", waived, []string{"without mounts nothing is sealed", "there is no [commands] allow"}},
		{"no-waivers", waived, []string{`"noexec" is waived (f:3)`}},
		{"abi>=6,mounts,seal,no-waivers", full, []string{"", "", "", ""}},
		{"digests", plan.Plan{Allowed: []plan.Allowed{{Text: "bash"}, {Text: "bash", For: "helper"}, {Text: "git"}}}, []string{"no digest is written down for bash, git; `jail lock` does it"}},
		{"mounts", plan.Plan{}, []string{"private namespaces can't be made here"}},
	} {
		all, err := parseRequire(tt.list)
		if err != nil {
			t.Fatal(err)
		}
		got := requirementsOf(tt.plan, all)
		for i, r := range got {
			if r.Met != (tt.want[i] == "") || !strings.HasPrefix(r.Why, tt.want[i]) || r.Met != (r.Why == "") {
				t.Errorf("%s: %+v; want %q", tt.list, r, tt.want[i])
			}
		}
	}
	for _, bad := range []string{"", "abi", "abi>6", "abi>=", "abi>=0", "abi>=-1", "abi>=x", "Mounts", "mounts,", "seals"} {
		if all, err := parseRequire(bad); err == nil {
			t.Errorf("%q is taken for %+v", bad, all)
		}
	}
}

// The digest is of the rules, not of where and by what they were read.
func TestDigest(t *testing.T) {
	p := plan.Plan{ABI: 7, Promises: []plan.Promise{{ID: "paths", By: []string{"landlock"}}}}
	a, b := newReport("1", p, ""), newReport("2", p, "cat")
	b.Host.Name = "other"
	if a.Digest == "" || a.Digest != b.Digest || b.digest() != a.Digest {
		t.Errorf("%q and %q", a.Digest, b.Digest)
	}
	p.Promises[0].By = nil
	if c := newReport("1", p, ""); c.Digest == a.Digest {
		t.Error("another plan has the same digest")
	}
}
