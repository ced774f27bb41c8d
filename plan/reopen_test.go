package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
	"jail/rules"
)

// A strictly longer grant reopens a carve-out, only from the same file or a flag.
func TestReopen(t *testing.T) {
	for _, tt := range []struct {
		name, text, other string
		flags             rules.Flags
		want              []string // what is reopened
		open              []string // the carve-outs that mounts must hold
	}{
		{
			name: "hide, read", text: "files = { write = ['.'], hide = ['a'], read = ['a/b'] }",
			want: []string{"read a/b in a f:2"}, open: []string{"a"},
		},
		{name: "hide, write", text: "files = { write = ['.', 'a/b'], hide = ['a'] }", want: []string{"read+write a/b in a f:2"}, open: []string{"a"}},
		{name: "hide, exec", text: "files = { read = ['.'], exec = ['a/b'], hide = ['a'] }", want: []string{"read+exec a/b in a f:2"}, open: []string{"a"}},
		{name: "a file", text: "files = { write = ['.'], hide = ['a'], read = ['a/b/f'] }", want: []string{"read a/b/f in a f:2"}, open: []string{"a"}},
		{name: "protect, write", text: "files = { write = ['.', 'a/b'], protect = ['a'] }", want: []string{"read+write a/b in a f:2"}, open: []string{"a"}},
		{name: "protect, read takes nothing back", text: "files = { write = ['.'], read = ['a/b'], protect = ['a'] }", open: []string{"a"}},
		{name: "the same path", text: "files = { write = ['.', 'a'], protect = ['a'] }", open: []string{"a"}},
		{name: "a shorter one", text: "files = { write = ['.', 'a'], hide = ['a/b'] }", open: []string{"a/b"}},
		{name: "a name that begins alike", text: "files = { write = ['.', 'a-b'], hide = ['a'] }", open: []string{"a"}},
		{name: "another file", text: "files = { write = ['.'], hide = ['a'] }", other: "files.read = ['a/b']", open: []string{"a"}},
		{name: "another file, protect", text: "files = { write = ['.'], protect = ['a'] }", other: "files.write = ['a/b']", open: []string{"a"}},
		{name: "a flag", text: "files = { write = ['.'], hide = ['a'] }", flags: rules.Flags{Read: []string{"a/b"}}, want: []string{"read a/b in a --read"}, open: []string{"a"}},
		{name: "a flag on the same path", text: "files = { write = ['.'], hide = ['a'] }", flags: rules.Flags{Read: []string{"a"}}, open: []string{"a"}},
		{name: "a file does not reopen a flag's", text: "files = { write = ['.', 'a/b'] }", flags: rules.Flags{Protect: []string{"a"}}, open: []string{"a"}},
		{
			name: "two carve-outs, one of another file", text: "files = { write = ['.', 'a/b'], protect = ['a'] }", other: "files.hide = ['a/b']",
			open: []string{"a", "a/b"},
		},
		{
			name: "hidden here and protected there: reading comes back", text: "files = { write = ['.', 'a/b/f'], hide = ['a/b'] }", other: "files.protect = ['a']",
			want: []string{"read a/b/f in a f:2"}, open: []string{"a", "a/b"},
		},
		{
			name: "reading by this file, writing by another", text: "files = { write = ['.'], hide = ['a'], read = ['a/b'] }", other: "files.write = ['a/b']",
			want: []string{"read a/b in a f:2"}, open: []string{"a"},
		},
		{
			name: "nothing else reaches it", text: "files = { read = ['a/b'], hide = ['a'] }",
			want: []string{"read a/b in a f:2"},
		},
		{
			name: "a carve-out inside what is reopened", text: "files = { write = ['.', 'a/b'], protect = ['a', 'a/b/f'] }",
			want: []string{"read+write a/b in a f:2"}, open: []string{"a", "a/b/f"},
		},
		{name: "a pattern's matches", text: "files = { write = ['.', 'a/b/f'], hide = ['*/b'] }", want: []string{"read+write a/b/f in a/b f:2"}, open: []string{"a/b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.file("home/proj/a/b/f", "")
			w.dirs("home/proj/a-b")
			in := rules.Input{Flags: tt.flags, Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte(tt.text)}}}
			if tt.other != "" {
				in.Sources = append(in.Sources, rules.Source{Kind: rules.UserFile, Name: "other", Text: []byte(tt.other)})
			}
			p, err := w.compileAll(in)
			w.must(err)
			var got, open []string
			for _, r := range p.Reopened {
				got = append(got, fmt.Sprintf("%s %s in %s %s", r.Access, w.inside(r.Path), w.inside(r.Carve), r.At))
			}
			for _, c := range p.Carves {
				if c.Open() {
					open = append(open, w.inside(c.Path))
				}
			}
			slices.Sort(open)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tt.open, open); d != "" {
				t.Error(d)
			}
		})
	}
}

// inside is a path relative to the project.
func (w *world) inside(path string) string {
	return w.short(path)[len("B/home/proj/"):]
}

// Without mounts nothing takes away, so there is nothing to give back.
func TestReopenWithoutMounts(t *testing.T) {
	w := newWorld(t)
	w.file("home/proj/a/b/f", "")
	w.host.Mounts = plan.Fact{Why: "x"}
	if p := w.plan("waive = ['mounts']\nfiles = { write = ['.', 'a/b'], hide = ['a'] }"); p.Reopened != nil {
		t.Errorf("%v", p.Reopened)
	}
}
