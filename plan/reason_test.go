package plan_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
)

// Every reason agrees with the evaluator, and names the rule.
func TestReason(t *testing.T) {
	w := newWorld(t)
	w.dirs("home/proj/.git/hooks", "home/.ssh", "home/cache", "home/tools", "home/lib")
	w.file("home/tools/t", "t")
	w.file("home/.ssh/id", "secret")
	p := w.plan(`version = 1
profiles = []
[files]
read = ["~/lib"]
write = [".", "~/cache", "~/.ssh"]
exec = ["~/tools"]
protect = [".git/hooks"]
hide = ["~/.ssh"]
`)
	type answer struct {
		Decision plan.Decision
		Layer    string
		Line     int
	}
	for _, tt := range []struct {
		path   string
		access plan.Access
		want   answer
	}{
		{"home/lib", plan.Read, answer{plan.Granted, "", 4}},
		{"home/proj/new", plan.Read | plan.Write, answer{plan.Granted, "", 5}},
		{"home/tools/t", plan.Exec, answer{plan.Granted, "", 6}},
		{"home/tools/t", plan.Read, answer{plan.Granted, "", 6}},
		{"home/lib", plan.Write, answer{plan.NoGrant, "landlock", 0}},
		{"home/other", plan.Read, answer{plan.NoGrant, "landlock", 0}},
		{"home/proj/a.out", plan.Exec, answer{plan.Writable, "mounts", 5}},
		{"home/tools/t", plan.Write, answer{plan.Executed, "landlock", 6}},
		{"home/proj/.git/hooks/x", plan.Write, answer{plan.Protected, "mounts", 7}},
		{"home/proj/.git/hooks/x", plan.Read, answer{plan.Granted, "", 5}},
		{"home/.ssh/id", plan.Read, answer{plan.Hidden, "mounts", 8}},
		{"home/.ssh/id", plan.Write, answer{plan.Hidden, "mounts", 8}},
	} {
		r := p.Reason(w.path(tt.path), tt.access)
		if d := cmp.Diff(tt.want, answer{r.Decision, r.Layer, r.At.Line}); d != "" {
			t.Errorf("%s %s:%s", tt.access, tt.path, d)
		}
		carved := r.Decision == plan.Hidden || r.Decision == plan.Protected // which the evaluator is not asked about
		if a := p.Access(w.path(tt.path)); !carved && (a&tt.access == tt.access) != (r.Decision == plan.Granted) {
			t.Errorf("%s %s: the evaluator says %s", tt.access, tt.path, a)
		}
	}
}

// A permissive plan opens the disk, and keeps carve-outs and what it is told to.
func TestPermissive(t *testing.T) {
	w := newWorld(t)
	w.dirs("home/.ssh", "home/other")
	w.file("home/other/f", "")
	p := w.plan(`version = 1
profiles = []
[files]
write = ["."]
hide = ["~/.ssh"]
`)
	own := w.path("home/.config/jail")
	open := p.Permissive([]string{own})
	const all = plan.Read | plan.Write | plan.Exec
	for _, name := range []string{"home/other/f", "home/proj/x"} {
		if a := open.Access(w.path(name)); a != all {
			t.Errorf("%s: %s", name, a)
		}
	}
	if a := open.Access("/etc/passwd"); a != all {
		t.Errorf("/etc/passwd: %s", a)
	}
	if r := open.Reason(w.path("home/.ssh"), plan.Read); r.Decision != plan.Hidden || r.Layer != "mounts" {
		t.Errorf("%+v", r)
	}
	if r := open.Reason(own, plan.Write); r.Decision != plan.Protected || r.Layer != "mounts" {
		t.Errorf("%+v", r)
	}
	if a := p.Access(w.path("home/other/f")); a != 0 {
		t.Errorf("the plan itself has changed: %s", a)
	}
	if a := open.Access("/proc"); a&plan.Write != 0 {
		t.Errorf("/proc: %s", a)
	}
	if _, err := os.Stat(own); err != nil {
		t.Fatal(err)
	}
}

// What an allow list leaves out of an exec tree is refused by the list, which no
// grant helps against.
func TestReasonAllowed(t *testing.T) {
	w := newWorld(t)
	w.dirs("home/proj", "home/tools/bin", "home/other")
	for _, name := range []string{"home/tools/bin/listed", "home/tools/bin/unlisted", "home/other/program"} {
		w.file(name, "\x7fELF "+name)
		if err := os.Chmod(w.path(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := w.plan("version = 1\nprofiles = []\n[files]\nwrite = ['.']\nexec = ['~/tools']\n[commands]\nallow = ['~/tools/bin/listed']\n")
	for path, want := range map[string]plan.Decision{
		"home/tools/bin/listed":   plan.Granted,
		"home/tools/bin/unlisted": plan.Commands,
		"home/other/program":      plan.NoGrant,
	} {
		r := p.Reason(w.path(path), plan.Exec)
		if r.Decision != want || want == plan.Commands && r.At.Line != 7 {
			t.Errorf("%s: %+v, want %v", path, r, want)
		}
	}
}
