package plan_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
	"jail/rules"
)

// "B" in a rule text is ${B}, the base of the world.
func TestCompileGrants(t *testing.T) {
	for _, tt := range []struct {
		name  string
		make  func(w *world)
		text  string
		want  []string
		error []string
	}{
		{name: "nothing", text: ""},
		{
			name: "the three kinds, relative, below home, absolute",
			text: `files = { read = ["~/.config"], write = ["."], exec = ["${B}/usr"] }`,
			want: []string{"read B/home/.config", "read+write B/home/proj", "read+exec B/usr"},
		},
		{
			name: "links are resolved", make: func(w *world) { w.link("usr", "lnk"); w.link("../lnk/bin", "home/b") },
			text: `files.exec = ["~/b"]`, want: []string{"read+exec B/usr/bin"},
		},
		{
			name: "one inode is one grant", make: func(w *world) { w.link("usr", "lnk") },
			text: `files = { exec = ["${B}/lnk", "${B}/usr/", "${B}/usr/bin/.."], read = ["${B}/usr"] }`,
			want: []string{"read+exec B/usr"},
		},
		{
			name: "a hard link is the same file", make: func(w *world) { w.file("out/a", ""); w.hard("out/a", "out/b") },
			text: `files = { read = ["${B}/out/a"], write = ["${B}/out/b"] }`, want: []string{"read+write B/out/a file"},
		},
		{
			name: "optional and absent", text: `files = { read = ["~/no?", "~/proj/no/no?", "${NO}/x?"], exec = ["${B}/usr?"] }`,
			want: []string{"read+exec B/usr"},
		},
		{
			name: "optional dangling link", make: func(w *world) { w.link("nowhere", "home/l") },
			text: `files.read = ["~/l?"]`,
		},
		{
			name: "absent", text: "files.read = [\n\"~/no\"]",
			error: []string{`f:3: "B/home/no" does not exist`, `end the path with "?" if it may be absent`},
		},
		{
			name: "dangling", make: func(w *world) { w.link("nowhere", "home/l") }, text: `files.read = ["~/l"]`,
			error: []string{`f:2: "~/l": no such file or directory`},
		},
		{
			name: "loop", make: func(w *world) { w.link("l", "home/l") }, text: `files.read = ["~/l"]`,
			error: []string{`f:2: "~/l": too many levels of symbolic links`},
		},
		{
			name: "below a file", make: func(w *world) { w.file("home/f", "") }, text: `files.read = ["~/f/x"]`,
			error: []string{`f:2: "~/f/x": not a directory`},
		},
		{
			name: "unset variable", text: `files.read = ["${NO}/x"]`,
			error: []string{`f:2: "${NO}/x": the variable is not set`, "set it, give a fallback with ${NAME:-path}, or end the path with ?"},
		},
		{
			name: "create", text: `files.create = ["~/.cache/x/y", "~/.config", "${NO}/x"]`,
			want: []string{"read+write B/home/.cache/x/y create", "read+write B/home/.config"},
			error: []string{
				`f:2: "B/home/.config" would let the jail write "B/home/.config/jail", where jail keeps its own files`, "grant less",
			},
		},
		{
			name: "create over a link to a directory", make: func(w *world) { w.link("B/out", "home/c") },
			text: `files.create = ["~/c", "~/c/d"]`, want: []string{"read+write B/out", "read+write B/out/d create"},
		},
		{
			name: "create over a file", make: func(w *world) { w.file("home/c", "") },
			text: `files.create = ["~/c"]`, error: []string{`f:2: "B/home/c" is not a directory`},
		},
		{
			name: "create the same twice", text: `files.create = ["~/c", "~/c/"]`, want: []string{"read+write B/home/c create"},
		},
		{
			name: "exec of a fifo", make: func(w *world) { w.must(syscall.Mkfifo(w.path("out/p"), 0o700)) },
			text: `files.exec = ["${B}/out/p"]`, error: []string{`f:2: "B/out/p" is no file or directory that could be executed`},
		},
		{
			name: "files", make: func(w *world) { w.file("out/a", ""); w.file("out/x", "") },
			text: `files = { write = ["${B}/out/a"], exec = ["${B}/out/x"] }`, want: []string{"read+write B/out/a file", "read+exec B/out/x file"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if tt.make != nil {
				tt.make(w)
			}
			p, err := w.compile(tt.text)
			if d := cmp.Diff(tt.error, w.said(err)); d != "" {
				t.Fatal(d)
			}
			if tt.error != nil {
				tt.want = nil
			}
			if d := cmp.Diff(tt.want, w.grants(p)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCompileFlagsStartAtTheWorkingDirectory(t *testing.T) {
	w := newWorld(t)
	w.dirs("home/proj/sub/x", "home/proj/x")
	w.host.Cwd = w.path("home/proj/sub")
	p, err := w.compileAll(rules.Input{
		Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte(`files.read = ["x"]`)}},
		Flags:   rules.Flags{Write: []string{"x"}},
	})
	w.must(err)
	if d := cmp.Diff([]string{"read+write B/home/proj/sub/x", "read B/home/proj/x"}, w.grants(p)); d != "" {
		t.Error(d)
	}
}

func TestMissing(t *testing.T) {
	w := newWorld(t)
	p := w.plan("files = { read = ['~/no?', '${NO}/a?'],\ncreate = ['${NO}/b'],\nhide = ['${NO}/c'] }")
	var got []string
	for _, m := range p.Missing {
		got = append(got, m.Text+" "+m.At.String())
	}
	if d := cmp.Diff([]string{"~/no f:2", "${NO}/a f:2", "${NO}/b f:3", "${NO}/c f:4"}, got); d != "" {
		t.Error(d)
	}
}

// A grant must not go through a link that an earlier run could have put there.
func TestPlanted(t *testing.T) {
	const hint = `write "B/out" if that is what you mean`
	for _, tt := range []struct {
		name string
		make func(w *world)
		text string
		want []string
	}{
		{
			"read", func(w *world) { w.link("B/out", "home/proj/l") }, `files = { write = ["."], read = ["l"] }`,
			[]string{`f:2: "l" leads to "B/out" through the symbolic link "B/home/proj/l", which the jail may write`, hint},
		},
		{
			"exec", func(w *world) { w.link("B/out", "home/proj/l") }, `files = { write = ["."], exec = ["l"] }`,
			[]string{`f:2: "l" leads to "B/out" through the symbolic link "B/home/proj/l", which the jail may write`, hint},
		},
		{
			"write", func(w *world) { w.link("B/out", "home/proj/l") }, `files.write = [".", "l"]`,
			[]string{`f:2: "l" leads to "B/out" through the symbolic link "B/home/proj/l", which the jail may write`, hint},
		},
		{
			"create", func(w *world) { w.link("B/out", "home/proj/l") }, `files = { write = ["."], create = ["l"] }`,
			[]string{`f:2: "l" leads to "B/out" through the symbolic link "B/home/proj/l", which the jail may write`, hint},
		},
		{
			"two links to one place", func(w *world) { w.link("B/out", "home/proj/l"); w.link("B/out", "home/proj/m") }, `files.write = [".", "l", "m"]`,
			[]string{`f:2: "l" leads to "B/out" through the symbolic link "B/home/proj/l", which the jail may write`, hint},
		},
		{
			"a directory of the path", func(w *world) { w.dirs("home/proj/d"); w.link("B/home", "home/proj/d/l"); w.dirs("home/x") },
			`files = { write = ["."], read = ["d/l/x"] }`,
			[]string{`f:2: "d/l/x" leads to "B/home/x" through the symbolic link "B/home/proj/d/l", which the jail may write`, `write "B/home/x" if that is what you mean`},
		},
		{
			"through another link", func(w *world) { w.link("B/out", "home/proj/l"); w.link("proj/l", "home/m") }, `files = { write = ["."], read = ["~/m"] }`,
			[]string{`f:2: "~/m" leads to "B/out" through the symbolic link "B/home/proj/l", which the jail may write`, hint},
		},
		{
			"by a jail with another profile", func(w *world) { w.dirs("home/.codex"); w.link("B/out", "home/.codex/l") }, `files.read = ["~/.codex/l"]`,
			[]string{`f:2: "~/.codex/l" leads to "B/out" through the symbolic link "B/home/.codex/l", which a jail with another profile may write`, hint},
		},
		{
			"by another profile, writable here", func(w *world) { w.dirs("home/.codex"); w.link("B/out", "home/.codex/l") }, `files.write = ["~/.codex/l", "${B}/out"]`, nil,
		},
		{"of the user's own making", func(w *world) { w.link("B/out", "home/l") }, `files = { write = ["."], read = ["~/l"] }`, nil},
		{"to what is writable anyway", func(w *world) { w.dirs("home/proj/d"); w.link("d", "home/proj/l") }, `files.write = [".", "l"]`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.make(w)
			_, err := w.compile(tt.text)
			if d := cmp.Diff(tt.want, w.said(err)); d != "" {
				t.Error(d)
			}
		})
	}
}

// Who can write jail's own directory, or put another in its place, can trust any
// rule file.
func TestOwn(t *testing.T) {
	moved := func(w *world) {
		w.must(os.Rename(w.path("home/.config"), w.path("home/dot")))
		w.link("dot", "home/.config")
		w.file("home/dot/jail/trust.toml", "")
	}
	for _, tt := range []struct {
		name    string
		make    func(w *world)
		text    string
		refused bool
	}{
		{"itself", nil, `files.write = ["~/.config/jail"]`, true},
		{"above", nil, `files.write = ["~/.config"]`, true},
		{"a file in it", func(w *world) { w.file("home/.config/jail/trust.toml", "") }, `files.write = ["~/.config/jail/trust.toml"]`, true},
		{"created in it", nil, `files.create = ["~/.config/jail/x"]`, true},
		{"beside", func(w *world) { w.dirs("home/.config/x") }, `files.write = ["~/.config/x"]`, false},
		{"read", nil, `files.read = ["~/.config/jail"]`, false},
		{"absent yet", func(w *world) { w.must(os.Remove(w.path("home/.config/jail"))) }, `files.write = ["~/.config"]`, true},
		{"behind a link", moved, `files.write = ["~/dot/jail"]`, true},
		{"a file behind a link", moved, `files.write = ["~/dot/jail/trust.toml"]`, true},
		{"created behind a link", moved, `files.create = ["~/dot/jail/x"]`, true},
		{
			"the link to it", func(w *world) {
				w.must(os.Rename(w.path("home/.config/jail"), w.path("out/jail")))
				w.link("B/out/jail", "home/.config/jail")
			},
			`files.write = ["~/.config"]`, true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if tt.make != nil {
				tt.make(w)
			}
			_, err := w.compile(tt.text)
			if (err != nil) != tt.refused || tt.refused && !strings.Contains(err.Error(), "jail keeps its own files") {
				t.Errorf("want refused %t, got %v", tt.refused, err)
			}
		})
	}
}

func TestWithCreated(t *testing.T) {
	w := newWorld(t)
	p := w.plan(`files.create = ["~/a", "~/b/c"]`)
	made, err := p.WithCreated(func(path string) error { return os.MkdirAll(path, 0o700) })
	w.must(err)
	if d := cmp.Diff([]string{"read+write B/home/a", "read+write B/home/b/c"}, w.grants(made)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"read+write B/home/a create", "read+write B/home/b/c create"}, w.grants(p)); d != "" {
		t.Errorf("the first plan changed:\n%s", d)
	}
	for g := range made.Grants() {
		if g.ID == (plan.ID{}) {
			t.Errorf("%s has no identity", g.Path)
		}
	}
	for name, make := range map[string]func(w *world, path string){
		"a link":          func(w *world, path string) { w.must(os.Symlink(w.path("out"), path)) },
		"a file":          func(w *world, path string) { w.must(os.WriteFile(path, nil, 0o600)) },
		"a link above it": func(w *world, path string) { w.link("B/out", "home/b"); w.dirs("out/c") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.plan(`files.create = ["~/b/c"]`)
			if name != "a link above it" {
				w.dirs("home/b")
			}
			_, err := p.WithCreated(func(path string) error { make(w, path); return nil })
			if d := cmp.Diff([]string{`f:2: "B/home/b/c" was replaced while jail was starting`}, w.said(err)); d != "" {
				t.Error(d)
			}
		})
	}
}

// A path that is not absolute has no access, and is no end of the program.
func TestNotAbsolute(t *testing.T) {
	w := newWorld(t)
	p := w.plan("files.read = ['${B}']")
	for _, path := range []string{"", ".", "..", "home", "home/proj"} {
		if a := p.Access(path); a != 0 {
			t.Errorf("%q has %s", path, a)
		}
	}
}
