package rules_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"jail/rules"
)

// show prints a policy as sorted lines without origins, so that two policies
// can be compared whatever the order of their files.
func show(p rules.Policy) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for g := range p.Grants() {
		say("%s %s%s", g.Access, spell(g.Path), map[bool]string{true: " create"}[g.Create])
	}
	for c := range p.Carves() {
		say("%s %s", keyOf(c), spell(c.Path))
	}
	for s := range p.Seeds() {
		say("seed %s %s", spell(s.File), spell(s.To))
	}
	for c := range p.Caches() {
		say("cache %s %s%s", c.Variable, spell(c.Dir), map[bool]string{true: " private"}[c.Private])
	}
	for w := range p.Waivers() {
		say("waive %s", w.Name)
	}
	for e := range p.Pass() {
		say("pass %s", e.Text)
	}
	for v := range p.Set() {
		say("set %s=%s", v.Name, v.Value.Text)
	}
	for l := range p.Limits() {
		say("limit %s %d", l.Name, l.Value)
	}
	for o := range p.Options() {
		say("option %s %s", o.Profile, strings.Join(o.Options, " "))
	}
	allow, _ := p.Allow()
	for _, n := range allow {
		say("allow %s", spell(n.Path))
	}
	for n := range p.Deny() {
		say("deny %s", spell(n.Path))
	}
	for c := range p.Commands() {
		file := ""
		if c.File != nil {
			file = spell(*c.File)
		}
		say("command %s file=%s sha256=%s message=%s helpers=%v", spell(c.Path), file, c.SHA256, c.Message, c.Helpers)
	}
	if at, off := p.UpgradesOff(); off {
		say("upgrades off by %s", at.File)
	}
	for _, n := range p.Profiles() {
		say("profile %s", n)
	}
	n := p.Network()
	for name, ports := range map[string]rules.Ports{"connect": n.Connect, "bind": n.Bind} {
		if ports.Set {
			say("%s %v", name, slices.Sorted(slices.Values(ports.List)))
		}
	}
	for name, on := range map[string]bool{"udp": n.UDP, "interfaces": n.Interfaces, "unix any": n.UnixAny} {
		if on {
			say("%s", name)
		}
	}
	for _, g := range n.Unix {
		say("unix %s", spell(g.Path))
	}
	out = append(out, showArtifact(p.Artifact())...)
	for _, g := range p.Guides() {
		say("guide %s: %s (%d)", strings.Join(g.Match, " "), g.Message, g.Status)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func showArtifact(a rules.Artifact) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf("artifact "+format, args...)) }
	for name, c := range map[string]rules.Choice{"run": a.Run, "libraries": a.Libraries, "network": a.Network} {
		if c.Off {
			say("no %s", name)
		}
	}
	if a.WriteSet {
		say("write set")
	}
	for _, g := range a.Write {
		say("write %s", spell(g.Path))
	}
	for _, d := range a.Deny {
		say("deny %s", spell(d.Path))
	}
	for _, d := range a.Drop {
		say("drop %s", d.Text)
	}
	for _, l := range a.Limits {
		say("limit %s %d", l.Name, l.Value)
	}
	return out
}

func spell(p rules.Path) string {
	s := p.Text
	for _, f := range []struct {
		on   bool
		mark string
	}{{p.Optional, "?"}, {p.Glob, " glob"}, {p.Flag, " flag"}} {
		if f.on {
			s += f.mark
		}
	}
	return s
}

// one parses a single rule file called "f" of the project, without profiles
// unless it names some.
func one(text string) (rules.Policy, error) {
	if !strings.Contains(text, "profiles") {
		text = "profiles = [] # one line, so that lines of the text start at 2\n" + text
	}
	return rules.Parse(rules.Input{Sources: []rules.Source{{Kind: rules.ProjectFile, Name: "f", Text: []byte(text)}}})
}

// ordered parses rule files of the user, each called by its key, in an order.
func ordered(texts map[string]string, names []string) (rules.Policy, error) {
	var in rules.Input
	for _, n := range names {
		in.Sources = append(in.Sources, rules.Source{Kind: rules.UserFile, Name: n, Text: []byte(texts[n])})
	}
	return rules.Parse(in)
}

// said is an error as the person sees it: message, then hint.
func said(t *testing.T, err error) []string {
	t.Helper()
	var p *rules.Problem
	if !errors.As(err, &p) {
		t.Fatalf("want a *rules.Problem, got %T: %v", err, err)
	}
	if p.Hint == "" {
		return []string{p.Error()}
	}
	return []string{p.Error(), p.Hint}
}

// permutations calls f with every order of names.
func permutations(names []string, f func([]string)) {
	var step func(k int)
	step = func(k int) {
		if k == len(names) {
			f(slices.Clone(names))
			return
		}
		for i := k; i < len(names); i++ {
			names[k], names[i] = names[i], names[k]
			step(k + 1)
			names[k], names[i] = names[i], names[k]
		}
	}
	step(0)
}

// keyOf is the key that makes a carve-out.
func keyOf(c rules.Carve) string {
	if c.Hide {
		return "hide"
	}
	return "protect"
}
