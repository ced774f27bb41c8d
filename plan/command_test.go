package plan_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
)

func TestFind(t *testing.T) {
	const writeHint = "what the jail may write it does not execute; a script runs as `bash SCRIPT`"
	for _, tt := range []struct {
		name    string
		make    func(w *world)
		rules   string
		path    string // PATH, from the base
		command string
		want    string
		notes   []string
		error   []string
		status  int
	}{
		{name: "first of two", path: "usr/bin:opt/bin", command: "both", want: "B/usr/bin/both"},
		{name: "the other order", path: "opt/bin:usr/bin", command: "both", want: "B/opt/bin/both"},
		{name: "no PATH", path: "", command: "both", error: []string{`"both": command not found`, "PATH is not set"}, status: 127},
		{name: "absent", path: "usr/bin:nowhere", command: "none", error: []string{`"none": command not found`, "it is looked up in PATH, as a shell does"}, status: 127},
		{
			name: "write trees are passed over", path: "home/proj/bin:usr/bin", command: "both", want: "B/usr/bin/both",
			notes: []string{"B/home/proj/bin/both is passed over: the jail may write it"},
		},
		{
			name: "only in a write tree", path: "home/proj/bin", command: "mine",
			error: []string{`"B/home/proj/bin/mine" may not be executed: it may be written (f:2: ".")`, writeHint}, status: 126,
		},
		{
			name: "the working directory as an empty entry", make: func(w *world) { w.file("home/proj/both", "") }, path: ":usr/bin", command: "both",
			want: "B/usr/bin/both", notes: []string{"B/home/proj/both is passed over: the jail may write it"},
		},
		{
			name: "a link to a write tree", make: func(w *world) { w.link("B/home/proj/bin", "home/l") }, path: "home/l:usr/bin", command: "both",
			want: "B/usr/bin/both", notes: []string{"B/home/l/both is passed over: the jail may write it"},
		},
		{name: "directories and plain files are passed over", make: func(w *world) { w.dirs("usr/bin/late"); w.file("opt/bin/late", "") }, path: "usr/bin:opt/bin", command: "late", want: "B/opt/bin/late"},
		{
			name: "no exec rule", path: "out/bin", command: "out",
			error: []string{`"B/out/bin/out" may not be executed: no exec rule reaches it`, `--exec B/out/bin, or in a rule file: [files] exec = ["B/out/bin"]`}, status: 126,
		},
		{name: "no exec rule, then one", path: "out/bin:usr/bin", command: "both", want: "B/usr/bin/both"},
		{
			name: "a link in an exec tree to a write tree", make: func(w *world) { w.link("B/home/proj/bin/mine", "usr/bin/l") }, path: "usr/bin", command: "l",
			error: []string{`"B/usr/bin/l" may not be executed: it may be written (f:2: ".")`, writeHint}, status: 126,
		},
		{name: "a path", command: "/usr/bin/both", want: "B/usr/bin/both"},
		{name: "a relative path", command: "../../usr/bin/both", want: "B/usr/bin/both"},
		{name: "a path that is not there", command: "/usr/bin/none", error: []string{`"B/usr/bin/none": no such file or directory`, "give the path of a program, or a name to look up in PATH"}, status: 127},
		{name: "a directory", command: "/usr/bin", error: []string{`"B/usr/bin" is not an executable file`, "chmod +x makes a program executable; a script runs as `bash SCRIPT`"}, status: 126},
		{
			name: "no mode bit", make: func(w *world) { w.file("usr/bin/n", ""); w.must(os.Chmod(w.path("usr/bin/n"), 0o644)) }, command: "/usr/bin/n",
			error: []string{`"B/usr/bin/n" is not an executable file`, "chmod +x makes a program executable; a script runs as `bash SCRIPT`"}, status: 126,
		},
		{name: "in a write tree, to be sealed", command: "./bin/mine", want: "B/home/proj/bin/mine"},
		{name: "in a write tree", command: "./bin/mine", rules: "\nartifact.run = 'deny'", error: []string{`"B/home/proj/bin/mine" may not be executed: it may be written (f:2: ".")`, writeHint}, status: 126},
		{name: "a script", make: func(w *world) { w.file("usr/bin/s", "#! "+w.path("usr/bin/both")+" -x\n") }, command: "/usr/bin/s", want: "B/usr/bin/s"},
		{
			name: "a script whose interpreter may not run", rules: "\nartifact.run = 'deny'", make: func(w *world) { w.file("usr/bin/s", "#!"+w.path("home/proj/bin/mine")+"\n") }, command: "/usr/bin/s",
			error: []string{`"B/home/proj/bin/mine" may not be executed: it may be written (f:2: ".")`, writeHint}, status: 126,
		},
		{
			name: "a script of a script", make: func(w *world) {
				w.file("usr/bin/s1", "#!"+w.path("out/bin/out")+"\n")
				w.file("usr/bin/s2", "#!"+w.path("usr/bin/s1")+"\n")
			}, command: "/usr/bin/s1",
			error: []string{`"B/out/bin/out" may not be executed: no exec rule reaches it`, `--exec B/out/bin, or in a rule file: [files] exec = ["B/out/bin"]`}, status: 126,
		},
		{name: "an empty interpreter line", make: func(w *world) { w.file("usr/bin/s", "#!\n") }, command: "/usr/bin/s", want: "B/usr/bin/s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			for _, f := range []string{"usr/bin/both", "opt/bin/both", "home/proj/bin/both", "home/proj/bin/mine", "out/bin/out", "out/bin/both"} {
				w.file(f, "")
			}
			if tt.make != nil {
				tt.make(w)
			}
			w.host.Env = []string{"PATH=" + w.list(tt.path), "B=" + w.base}
			p := w.plan("files = { write = ['.'], exec = ['${B}/usr', '${B}/opt'] }\nenv.pass = ['PATH']" + tt.rules)
			command := tt.command
			if command[0] == '/' {
				command = w.path(command)
			}
			got, err := p.Find(command)
			if d := cmp.Diff(tt.error, w.said(err)); d != "" {
				t.Fatal(d)
			}
			var problem *plan.Problem
			if errors.As(err, &problem) && problem.Status != tt.status {
				t.Errorf("want status %d, got %d", tt.status, problem.Status)
			}
			if w.short(got.Path) != tt.want {
				t.Errorf("want %s, got %s", tt.want, w.short(got.Path))
			}
			for i := range got.Notes {
				got.Notes[i] = w.short(got.Notes[i])
			}
			if d := cmp.Diff(tt.notes, got.Notes); d != "" {
				t.Error(d)
			}
		})
	}
}

// list makes a PATH of names below the base; an empty name stays empty.
func (w *world) list(names string) string {
	dirs := strings.Split(names, ":")
	for i, n := range dirs {
		if n != "" {
			dirs[i] = w.path(n)
		}
	}
	return strings.Join(dirs, ":")
}
