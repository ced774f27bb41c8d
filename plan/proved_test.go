package plan_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
)

// The proof says what was compared: links that rules lead through, files with more
// names than one, trees that lie in one of the other kind.
func TestProof(t *testing.T) {
	w := newWorld(t)
	w.dirs("home/x", "home/proj/tools/made", "elsewhere")
	w.file("home/x/tool", "#!/bin/sh\n")
	w.hard("home/x/tool", "home/x/again")
	w.link("B/elsewhere", "home/w")
	p := w.plan("files = { write = ['.', '~/w', 'tools/made'], exec = ['~/x', 'tools'], read = ['${B}/out'] }")

	var nested []string
	for _, n := range p.Nested() {
		nested = append(nested, fmt.Sprintf("%s %s in %s", w.short(n.Inner.Path), n.Inner.Access, w.short(n.Outer.Path)))
	}
	want := []string{"B/home/proj/tools read+exec in B/home/proj", "B/home/proj/tools/made read+write in B/home/proj/tools"}
	if d := cmp.Diff(want, nested); d != "" {
		t.Error(d)
	}
	if l := p.Proof.Symlinks; len(l) != 1 || w.short(l[0].Path) != "B/home/w" || w.short(l[0].Real) != "B/elsewhere" || l[0].Access != plan.Write || l[0].At.Line == 0 {
		t.Errorf("symlinks: %+v", l)
	}
	if p.Proof.Linked != 1 || len(p.Proof.Searched) == 0 || w.short(p.Proof.Searched[0]) != "B/home/proj/tools" && w.short(p.Proof.Searched[0]) != "B/home/x" {
		t.Errorf("hard links: %+v", p.Proof)
	}
	if p.Proof.Mounts < 5 {
		t.Errorf("%d parts of file systems", p.Proof.Mounts)
	}
}

// A command counts as locked if its own digest was compared; what comes with it
// is not asked for.
func TestUnpinned(t *testing.T) {
	w := newWorld(t)
	programs(w)
	pin := "[[command]]\nname = 'tool'\nsha256 = '" + sum(elf+"tool") + "'\n"
	for rules, want := range map[string][]string{
		"":                                     nil,
		"[commands]\nallow = ['tool']\n":       {"tool"},
		"[commands]\nallow = ['tool']\n" + pin: nil,
		"[commands]\nallow = ['tool', 'sh']\n" + pin: {"sh"},
	} {
		var got []string
		for _, a := range w.plan(system + rules).Unpinned() {
			got = append(got, a.Text)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s:\n%s", rules, d)
		}
	}
}
