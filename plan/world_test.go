package plan_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jail/plan"
	"jail/rules"
)

// world is a directory tree with a home and a project to compile plans for.
type world struct {
	t    *testing.T
	base string
	host plan.Host
}

func newWorld(t *testing.T) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, base: base}
	w.dirs("home/proj", "home/.config/jail", "tmp", "usr/bin", "out")
	ok := plan.Fact{OK: true}
	w.host = plan.Host{
		Home: w.path("home"), Cwd: w.path("home/proj"), UID: os.Getuid(), Temp: w.path("tmp"), Own: []string{w.path("home/.config/jail")},
		ABI: 7, Landlock: ok, Seccomp: ok, Mounts: ok, Peers: ok, Tree: plan.Tree{Root: w.path("home/proj")},
		Env: []string{"HOME=" + w.path("home"), "B=" + base},
	}
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.base, name) }

func (w *world) dirs(names ...string) {
	w.t.Helper()
	for _, n := range names {
		w.must(os.MkdirAll(w.path(n), 0o755))
	}
}

func (w *world) file(name, text string) {
	w.t.Helper()
	w.dirs(filepath.Dir(name))
	w.must(os.WriteFile(w.path(name), []byte(text), 0o755))
}

// link makes a symbolic link; a target that begins with "B/" starts at the base.
func (w *world) link(target, name string) {
	w.t.Helper()
	if rest, ok := strings.CutPrefix(target, "B/"); ok {
		target = w.path(rest)
	}
	w.must(os.Symlink(target, w.path(name)))
}

func (w *world) hard(old, name string) {
	w.t.Helper()
	w.must(os.Link(w.path(old), w.path(name)))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// compile makes the plan of a rule file called "f".
func (w *world) compile(text string) (plan.Plan, error) {
	w.t.Helper()
	return w.compileAll(rules.Input{Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte(text)}}})
}

func (w *world) compileAll(in rules.Input) (plan.Plan, error) {
	w.t.Helper()
	if len(in.Sources) == 0 {
		in.Sources = []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte("")}}
	}
	if !strings.Contains(string(in.Sources[0].Text), "profiles") {
		in.Sources[0].Text = append([]byte("profiles = []\n"), in.Sources[0].Text...)
	}
	pol, err := rules.Parse(in)
	if err != nil {
		w.t.Fatalf("%s: %v", in.Sources[0].Text, err)
	}
	return plan.Compile(pol, w.host)
}

// plan compiles or ends the test.
func (w *world) plan(text string) plan.Plan {
	w.t.Helper()
	p, err := w.compile(text)
	w.must(err)
	return p
}

// grants shows the grants of a plan, with the base as "B".
func (w *world) grants(p plan.Plan) []string {
	var out []string
	for g := range p.Grants() {
		s := g.Access.String() + " " + w.short(g.Path)
		if g.Create {
			s += " create"
		}
		if !g.Dir {
			s += " file"
		}
		out = append(out, s)
	}
	return out
}

func (w *world) short(s string) string { return strings.ReplaceAll(s, w.base, "B") }

// said is the error and its hint, with the base as "B"; nil if there is none.
func (w *world) said(err error) []string {
	w.t.Helper()
	if err == nil {
		return nil
	}
	var p *plan.Problem
	if !errors.As(err, &p) {
		w.t.Fatalf("want a *Problem, got %T: %v", err, err)
	}
	if p.Hint == "" {
		return []string{w.short(p.Error())}
	}
	return []string{w.short(p.Error()), w.short(p.Hint)}
}
