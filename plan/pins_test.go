package plan_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
	"jail/rules"
)

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// A digest that is right goes with the grant.
func TestPins(t *testing.T) {
	w := newWorld(t)
	programs(w)
	p := w.plan(system + "[[command]]\nname = 'tool'\nsha256 = '" + sum(elf+"tool") + "'")
	for g := range p.Grants() {
		if g.Path == w.path("usr/bin/tool") && g.Pin != nil && g.Access == plan.Read|plan.Exec {
			return
		}
	}
	t.Errorf("no grant is pinned: %q", w.grants(p))
}

func TestLock(t *testing.T) {
	entry := func(name, path, text string) string {
		return "[[command]]\nname = '" + name + "'\npath = '" + path + "'\nsha256 = '" + sum(text) + "'\n"
	}
	const hint = "`jail lock --update` shows what has changed and writes it down"
	for _, tt := range []struct {
		name, lock string
		want       []string
	}{
		{name: "right", lock: entry("tool", "B/usr/bin/tool", elf+"tool") + entry("sh", "B/usr/bin/sh", elf+"sh")},
		{name: "missing", lock: entry("tool", "B/usr/bin/tool", elf+"tool"), want: []string{`f:6: "sh" is allowed, but not in "l"`, hint}},
		{
			name: "another path", lock: entry("tool", "B/usr/bin/other", elf+"tool"),
			want: []string{`l:2: "tool" is locked to "B/usr/bin/other", but here it is "B/usr/bin/tool"`, hint},
		},
		{
			name: "another file", lock: entry("sh", "B/usr/bin/sh", elf+"sh") + entry("tool", "B/usr/bin/tool", "x"),
			want: []string{`l:6: "tool": "B/usr/bin/tool" is not the file that it was:` + "\n  sha256 " + sum("x") + " is wanted\n  sha256 " + sum(elf+"tool") + " is there", hint},
		},
		{
			name: "not allowed", lock: entry("tool", "B/usr/bin/tool", elf+"tool") + entry("sh", "B/usr/bin/sh", elf+"sh") + entry("x", "/x", ""),
			want: []string{`l:10: "x" is locked, but the rules beside "l" do not allow it`, hint},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			programs(w)
			_, err := w.compileAll(rules.Input{Sources: []rules.Source{{
				Kind: rules.RulesFile, Name: "f", Text: []byte(system + "[commands]\nallow = ['tool', 'sh']"),
				Lock: []byte("version = 1\n" + strings.ReplaceAll(tt.lock, "B/", w.base+"/")), LockName: "l",
			}}})
			if d := cmp.Diff(tt.want, w.said(err)); d != "" {
				t.Error(d)
			}
		})
	}
}
