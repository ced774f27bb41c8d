package rules

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
)

// FuzzParse: no text makes Parse panic; a policy is printed, parsed again and is
// the same; the line index knows every key that has a value.
func FuzzParse(f *testing.F) {
	for _, name := range ProfileNames() {
		text, _ := ProfileText(name)
		f.Add(text)
	}
	for _, s := range []string{
		"", "profiles = []", "waive = ['mounts']\n[network]\nconnect = [1]\nudp = true", "env.set.A = \"x\\n\"\nenv.pass = ['A*']",
		"files = { hide = ['**/*.env?', 'a[?]'], read = ['''a''', \"\"\"\nb\"\"\"] }", "limits.cpu = 1\r\n# x\r\n[[guide]]\nmatch = 'a'",
		"[files]\nread=['a']\nREAD=['/']", "'!' = 0",
		"commands.allow = ['a', '/b?']\ncommands.deny = ['c?']\n[[command]]\nname = 'a'\npath = '~/a'\nhelpers = ['b', 'c?']\nmessage = 'm'",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := Input{Sources: []Source{{Kind: RulesFile, Name: "f", Text: []byte(text)}}}
		p, err := Parse(in)
		checkLines(t, text)
		if err != nil {
			if !reflect.ValueOf(p).IsZero() {
				t.Fatal("an error comes with a policy")
			}
			return
		}
		checkPolicy(t, p)
		in.Sources[0].Text = []byte(printPolicy(p))
		again, err := Parse(in)
		if err != nil {
			t.Fatalf("%v:\n%s", err, in.Sources[0].Text)
		}
		if d := cmp.Diff(printPolicy(p), printPolicy(again)); d != "" {
			t.Error(d)
		}
	})
}

// checkLines compares the index with what the toml package found. Keys that
// need quotes are not ours.
func checkLines(t *testing.T, text string) {
	t.Helper()
	var d document
	md, err := toml.Decode(text, &d)
	if err != nil || strings.ContainsAny(text, "\\\ufeff") {
		return
	}
	lines, x := strings.Count(text, "\n")+1, indexLines(text)
	for k, at := range x.keys {
		if at < 1 || at > lines {
			t.Errorf("%q is on line %d of %d", k, at, lines)
		}
	}
	file := file{lines: x}
	for _, k := range md.Keys() {
		plain := !slices.ContainsFunc(k, func(s string) bool { return !isBare(s) })
		if kind := md.Type(k...); plain && kind != "Hash" && kind != "ArrayHash" && file.anyLine(k.String()).Line == 0 && !inlineTables(text) {
			t.Errorf("no line is known for %q", k)
		}
	}
}

// inlineTables: an array of inline tables is not told from other arrays.
func inlineTables(text string) bool { return strings.Contains(text, "{") }

// checkPolicy is what must hold for every policy.
func checkPolicy(t *testing.T, p Policy) {
	t.Helper()
	for g := range p.Grants() {
		if g.Path.Text == "" || g.Path.Glob || g.Access == 0 || g.From.File == "" || g.Create && g.Path.Optional || g.Access&Write != 0 && g.Access&Exec != 0 {
			t.Errorf("no grant should be %+v", g)
		}
	}
	for e := range p.Pass() {
		if _, err := path.Match(e.Text, "X"); err != nil || strings.ContainsAny(e.Text, "[?\\/=") {
			t.Errorf("no pattern should be %q", e.Text)
		}
	}
	for l := range p.Limits() {
		if l.Value == 0 || int64(l.Value) < 0 {
			t.Errorf("no limit should be %+v", l)
		}
	}
	for v := range p.Set() {
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") || strings.Contains(v.Value.Text, "\x00") {
			t.Errorf("no variable should be %+v", v)
		}
	}
}

// printPolicy is a rule file that says what p says; built-in profiles were
// merged in, so none is named.
func printPolicy(p Policy) string {
	var b strings.Builder
	fmt.Fprintln(&b, "profiles = []")
	list := func(key string, words []string) {
		slices.Sort(words)
		if words = slices.Compact(words); len(words) > 0 {
			fmt.Fprintf(&b, "%s = [%s]\n", key, strings.Join(words, ", "))
		}
	}
	lists := map[string][]string{}
	for g := range p.Grants() {
		key := "files." + g.Access.String()
		if g.Create {
			key = "files.create"
		}
		lists[key] = append(lists[key], quote(spell(g.Path)))
	}
	for c := range p.Carves() {
		key := "files.protect"
		if c.Hide {
			key = "files.hide"
		}
		lists[key] = append(lists[key], quote(spell(c.Path)))
	}
	for w := range p.Waivers() {
		lists["waive"] = append(lists["waive"], quote(w.Name))
	}
	allow, _ := p.Allow()
	for _, n := range allow {
		lists["commands.allow"] = append(lists["commands.allow"], quote(spell(n.Path)))
	}
	for n := range p.Deny() {
		lists["commands.deny"] = append(lists["commands.deny"], quote(spell(n.Path)))
	}
	for e := range p.Pass() {
		lists["env.pass"] = append(lists["env.pass"], quote(e.Text))
	}
	for _, key := range []string{"waive", "files.read", "files.write", "files.exec", "files.create", "files.protect", "files.hide", "commands.allow", "commands.deny", "env.pass"} {
		list(key, lists[key])
	}
	var sets []string
	for v := range p.Set() {
		sets = append(sets, fmt.Sprintf("env.set.%s = %s\n", v.Name, quote(v.Value.Text)))
	}
	for l := range p.Limits() {
		sets = append(sets, fmt.Sprintf("limits.%s = %d\n", l.Name, l.Value))
	}
	slices.Sort(sets)
	b.WriteString(strings.Join(slices.Compact(sets), ""))
	n := p.Network()
	for _, l := range []struct {
		key   string
		ports Ports
	}{{"connect", n.Connect}, {"bind", n.Bind}} {
		if l.ports.Set {
			fmt.Fprintf(&b, "network.%s = %s\n", l.key, strings.ReplaceAll(fmt.Sprint(l.ports.List), " ", ", "))
		}
	}
	fmt.Fprintf(&b, "network.udp = %t\nnetwork.interfaces = %t\n", n.UDP, n.Interfaces)
	if n.UnixAny {
		fmt.Fprintln(&b, `network.unix = "any"`)
	}
	for c := range p.Commands() {
		fmt.Fprintf(&b, "[[command]]\nname = %s\nsha256 = %s\nmessage = %s\n", quote(spell(c.Path)), quote(c.SHA256), quote(c.Message))
		if c.File != nil {
			fmt.Fprintf(&b, "path = %s\n", quote(spell(*c.File)))
		}
		var helpers []string
		for _, h := range c.Helpers {
			helpers = append(helpers, quote(spell(h)))
		}
		fmt.Fprintf(&b, "helpers = [%s]\n", strings.Join(helpers, ", "))
	}
	return b.String()
}

// spell writes a path so that it parses to the same.
func spell(p Path) string {
	s := p.Text
	if !p.Glob {
		s = strings.NewReplacer("?", "[?]", "*", "[*]", "[", "[[]").Replace(s)
	}
	if p.Optional {
		s += "?"
	}
	return s
}

// quote writes a TOML string: JSON's escapes are TOML's too.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(b), "\x7f", `\u007f`)
}

// FuzzLock: no text makes ParseLock panic, and what it takes is written so that
// it is read again as the same.
func FuzzLock(f *testing.F) {
	entry := Locked{Name: "git", Path: "/usr/bin/git", SHA256: strings.Repeat("0a", 32), Package: "git", Version: "1:2.39"}
	text, err := FormatLock([]Locked{entry, {Name: "bash", Path: "/usr/bin/bash", SHA256: strings.Repeat("b", 64)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	for _, s := range []string{"", "version = 1", "version = 1\n[[command]]\nname = 'a'", "version = 1\n[[command]]\nname = 'a'\nx = 1", "command = 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := ParseLock("l", []byte(text))
		if err != nil {
			return
		}
		out, err := FormatLock(entries)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseLock("l", out)
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		for _, l := range [][]Locked{entries, again} {
			slices.SortFunc(l, func(a, b Locked) int { return strings.Compare(a.Name, b.Name) })
			for i := range l {
				l[i].At = Origin{}
			}
		}
		if d := cmp.Diff(entries, again); d != "" {
			t.Error(d)
		}
	})
}

// FuzzPath: what parses is clean of control characters, says the same when it is
// spelled out and parsed again, and expands to a path that HOME or a variable
// begins, or that is as written.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"/a", "~/b?", "${A:-~/c}/d", "a[?]", "**/*.x?", "[[]", "[", "$", "${", "~x", "{a,b}", "a\\*"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, text string, globs bool) {
		p, why := parsePath(text, globs)
		if why != "" {
			if p != (Path{}) {
				t.Fatal("an error comes with a path")
			}
			return
		}
		if p.Text == "" || p.Flag || p.Glob && !globs || strings.ContainsFunc(p.Text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("no path should be %+v", p)
		}
		if again, why := parsePath(spell(p), globs); why != "" || again != p {
			t.Errorf("%+v is spelled %q, which parses to %+v %s", p, spell(p), again, why)
		}
		for _, value := range []string{"", "/v", "v:w"} {
			s, ok := p.Expand("/h", func(string) string { return value })
			if ok && strings.Contains(s, "${") && !strings.Contains(value, "$") && strings.HasPrefix(s, "$") {
				t.Errorf("%+v expands to %q", p, s)
			}
		}
	})
}
