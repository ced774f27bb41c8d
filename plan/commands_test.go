package plan_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
)

// elf begins like a program without an interpreter.
const elf = "\x7fELF"

// programs makes a small system: "usr" with programs, copies, links and libraries.
func programs(w *world) {
	for name, text := range map[string]string{
		"usr/bin/tool": elf + "tool", "usr/bin/other": elf + "other", "usr/bin/same": elf + "same size", "usr/bin/size": elf + "size same",
		"usr/lib/tool-core/copy": elf + "tool", "usr/share/doc": "text", "usr/lib/libc.so.6": elf + "lib",
		"usr/lib/x/deep/er/prog": elf + "prog", "usr/lib/x/data": "data", "usr/bin/sh": elf + "sh", "usr/bin/script": "#!B/usr/bin/sh\n",
		"usr/bin/noshebang": "echo\n", "usr/bin/empty#!": "#!\n",
	} {
		w.file(name, strings.ReplaceAll(text, "B/", w.base+"/"))
	}
	w.must(os.Chmod(w.path("usr/lib/x/data"), 0o644))
	w.must(os.Chmod(w.path("usr/lib/libc.so.6"), 0o644))
	w.link("tool", "usr/bin/alias")
	w.link("B/usr/bin/same", "usr/bin/alternative")
	w.hard("usr/bin/other", "usr/bin/another")
	w.host.Env = append(w.host.Env, "PATH="+w.path("home/proj/bin")+":"+w.path("usr/bin"))
}

const system = "[files]\nexec = ['${B}/usr']\nwrite = ['.']\n"

// accesses says what the plan gives, for each path that is named.
func (w *world) accesses(p plan.Plan, names ...string) string {
	var out []string
	for _, n := range names {
		out = append(out, n+" "+p.Access(w.path(n)).String())
	}
	return strings.Join(out, "\n")
}

func TestDeny(t *testing.T) {
	for _, tt := range []struct {
		name   string
		make   func(w *world)
		rules  string
		denied []string // and nothing else
	}{
		{name: "by name, with its copy", rules: "deny = ['tool']", denied: []string{"usr/bin/tool", "usr/lib/tool-core/copy of usr/bin/tool"}},
		{name: "through a link", rules: "deny = ['alias']", denied: []string{"usr/bin/tool", "usr/lib/tool-core/copy of usr/bin/tool"}},
		{name: "by path", rules: "deny = ['${B}/usr/bin/alternative']", denied: []string{"usr/bin/same"}},
		{name: "hard link", rules: "deny = ['another']", denied: []string{"usr/bin/another", "usr/bin/other of usr/bin/another"}},
		{name: "same size only", rules: "deny = ['same']", denied: []string{"usr/bin/same"}},
		{name: "absent", rules: "deny = ['nothing?', '${B}/none?']"},
		{
			name: "far away name", rules: "deny = ['tool']", make: func(w *world) { w.hard("usr/bin/tool", "usr/lib/x/deep/er/far") },
			denied: []string{"usr/bin/tool", "usr/lib/tool-core/copy of usr/bin/tool", "usr/lib/x/deep/er/far of usr/bin/tool"},
		},
		{
			name: "all of that name", rules: "deny = ['tool']", make: func(w *world) { w.file("usr/local/bin/tool", elf+"another") },
			denied: []string{"usr/bin/tool", "usr/lib/tool-core/copy of usr/bin/tool", "usr/local/bin/tool"},
		},
		{name: "what the jail may write is not asked", rules: "deny = ['x?']", make: func(w *world) { w.file("home/proj/bin/x", elf) }},
		{
			name: "built in", rules: "deny = ['tool']", make: func(w *world) { w.file("usr/bin/busybox", elf+"\x00ls\x00tool\x00") },
			denied: []string{"usr/bin/busybox of usr/bin/tool", "usr/bin/tool", "usr/lib/tool-core/copy of usr/bin/tool"},
		},
		{
			name: "named by [[command]]", rules: "deny = ['tool']\n[[command]]\nname = 'tool'\npath = '${B}/usr/lib/x/deep/er/prog'",
			denied: []string{"usr/bin/tool", "usr/lib/tool-core/copy of usr/bin/tool", "usr/lib/x/deep/er/prog"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			programs(w)
			if tt.make != nil {
				tt.make(w)
			}
			p := w.plan(system + "[commands]\n" + tt.rules)
			var got []string
			for _, d := range p.Denied {
				s := strings.TrimPrefix(d.Path, w.base+"/")
				if a := p.Access(d.Path); a != 0 {
					t.Errorf("%s: %s", d.Path, a)
				}
				if d.Of != "" {
					s += " of " + strings.TrimPrefix(d.Of, w.base+"/")
				}
				got = append(got, s)
			}
			if d := cmp.Diff(tt.denied, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// An exec tree inside a write tree: what the write grant gives is taken by a cover.
func TestDenyInsideWriteTree(t *testing.T) {
	w := newWorld(t)
	programs(w)
	w.file("home/proj/tools/x", elf+"x")
	w.file("home/proj/tools/y", elf+"y")
	p := w.plan("[files]\nexec = ['tools']\nwrite = ['.']\n[commands]\ndeny = ['tools/x']")
	if d := cmp.Diff([]string{"read+write B/home/proj", "read+exec B/home/proj/tools"}, w.grants(p)); d != "" {
		t.Error(d)
	}
	for g := range p.Grants() {
		if want := g.Path == w.path("home/proj/tools"); g.Split != want {
			t.Errorf("%s: split is %t", g.Path, g.Split)
		}
	}
	hidden := ""
	for _, c := range p.Carves {
		if c.Hide && c.Open() {
			hidden += w.short(c.Path)
		}
	}
	if hidden != "B/home/proj/tools/x" {
		t.Errorf("hidden: %q", hidden)
	}
}

// An interpreter that is denied does not come with a command.
func TestDeniedInterpreter(t *testing.T) {
	w := newWorld(t)
	programs(w)
	p := w.plan(system + "[commands]\nallow = ['script']\ndeny = ['sh']")
	if d := cmp.Diff("usr/bin/script read+exec\nusr/bin/sh none", w.accesses(p, "usr/bin/script", "usr/bin/sh")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{`B/usr/bin/sh (f:6), interpreter of "script", is denied (f:7)`}, eachShort(w, p.Remarks)); d != "" {
		t.Error(d)
	}
}

// What is beside a denied file, and beside the directories above it, stays.
func TestDenySiblings(t *testing.T) {
	w := newWorld(t)
	programs(w)
	p := w.plan(system + "[commands]\ndeny = ['tool']\n")
	w.file("usr/bin/new", elf)
	want := `usr read
usr/bin read
usr/bin/tool none
usr/bin/alias none
usr/bin/new none
usr/bin/sh read+exec
usr/lib/tool-core read
usr/lib/tool-core/copy none
usr/lib/x/deep/er/prog read+exec
usr/share/doc read+exec
home/proj/x read+write`
	var names []string
	for line := range strings.Lines(want) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	if d := cmp.Diff(want, w.accesses(p, names...)); d != "" {
		t.Error(d)
	}
	text, err := json.Marshal(p)
	w.must(err)
	var again plan.Plan
	w.must(json.Unmarshal(text, &again))
	if d := cmp.Diff(want, w.accesses(again, names...)); d != "" {
		t.Errorf("after the journey to the stage: %s", d)
	}
}

func TestAllow(t *testing.T) {
	w := newWorld(t)
	programs(w)
	w.file("usr/libexec/helper", elf+"helper")
	w.file("usr/lib/tool-data/prog", elf)
	p := w.plan(system + `[commands]
allow = ["script", "alternative", "gone?"]
[[command]]
name = "alternative"
helpers = ["${B}/usr/libexec/helper", "other", "no?"]
`)
	var got []string
	for _, a := range p.Allowed {
		got = append(got, strings.TrimPrefix(a.Path, w.base+"/")+" "+a.Text+" "+a.For)
	}
	if d := cmp.Diff([]string{
		"usr/bin/script script ", "usr/bin/sh script interpreter",
		"usr/bin/same alternative ", "usr/libexec/helper alternative helper", "usr/bin/other alternative helper",
	}, got); d != "" {
		t.Error(d)
	}
	want := `usr/bin/script read+exec
usr/bin/sh read+exec
usr/bin/same read+exec
usr/bin/other read+exec
usr/bin/another read+exec
usr/libexec/helper read+exec
usr/bin/tool none
usr/bin read
usr/share/doc read
usr/lib/libc.so.6 read
usr/lib/tool-core/copy read
usr/lib/x/deep/er/prog read
home/proj/x read+write` // usr is the commands' own prefix here: its lib is theirs
	var names []string
	for line := range strings.Lines(want) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	if d := cmp.Diff(want, w.accesses(p, names...)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{
		"alternative (f:6) is B/usr/bin/same",
	}, eachShort(w, p.Remarks)); d != "" {
		t.Error(d)
	}
	if p.UpgradesOff.Line != 6 {
		t.Errorf("upgrades off: %v", p.UpgradesOff)
	}
	if got := p.Deciding(w.path("usr/bin/sh")); got != `f:6: "script" is allowed, and this is its interpreter` {
		t.Errorf("deciding: %s", got)
	}
}

func eachShort(w *world, list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, w.short(s))
	}
	return out
}

func TestCommandErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		make  func(w *world)
		rules string
		want  []string
	}{
		{
			name: "not found", rules: "deny = [\n'nothing']",
			want: []string{`f:7: "nothing": no such command in PATH`, `write its path, or end the name with "?" if it may be absent`},
		},
		{
			name: "not found, allowed", rules: "allow = ['nothing']",
			want: []string{`f:6: "nothing": no such command in PATH`, `write its path, or end the name with "?" if it may be absent`},
		},
		{name: "no such path", rules: "deny = ['${B}/none']", want: []string{`f:6: "${B}/none" does not exist`, `end it with "?" if it may be absent`}},
		{
			name: "directory", rules: "allow = ['${B}/usr/bin']",
			want: []string{`f:6: "${B}/usr/bin" is a directory, no command`, "name the programs in it; [files] exec grants directories"},
		},
		{
			name: "none is here", rules: "allow = ['nothing?']",
			want: []string{"f:6: none of the allowed commands is here: nothing could be started", "name one that is"},
		},
		{
			name: "no interpreter", rules: "allow = ['noshebang']",
			want: []string{`f:6: "noshebang": "B/usr/bin/noshebang" is neither a binary nor a script with a #! line: the kernel can't execute it`, "mend it, or allow the interpreter and start the file with it"},
		},
		{
			name: "empty #! line", rules: "allow = ['empty#!']",
			want: []string{`f:6: "empty#!": "B/usr/bin/empty#!" has a #! line without an interpreter`, "mend it, or allow the interpreter and start the file with it"},
		},
		{
			name: "not executable", rules: "allow = ['${B}/usr/lib/x/data']",
			want: []string{`f:6: "${B}/usr/lib/x/data": "B/usr/lib/x/data" is not executable`, "chmod +x makes a program executable"},
		},
		{
			name: "no exec rule", rules: "allow = ['${B}/out/x']", make: func(w *world) { w.file("out/x", elf) },
			want: []string{`f:6: "${B}/out/x" is allowed, but no exec rule reaches "B/out/x"`, `[files] exec = ["B/out"]`},
		},
		{
			name: "both", rules: "allow = ['tool']\ndeny = ['tool']",
			want: []string{`f:7: "tool" is allowed (f:6) and denied`, "one file is one program to the kernel, whatever its name: drop one of the two"},
		},
		{
			name: "both, by two names", rules: "allow = ['other']\ndeny = ['another']",
			want: []string{`f:7: "another" is denied, and is the same file as "other", which is allowed (f:6): "B/usr/bin/other"`, "one file is one program to the kernel, whatever its name: drop one of the two"},
		},
		{
			name: "one of many", rules: "deny = ['ls']", make: func(w *world) { w.file("usr/bin/busybox", elf); w.link("busybox", "usr/bin/ls") },
			want: []string{`f:6: "ls" is "B/usr/bin/busybox", many commands in one file: it can't be denied alone`, `deny "busybox" if all of them are meant`},
		},
		{
			name: "built into what is allowed", rules: "allow = ['busybox']\ndeny = ['tool']", make: func(w *world) { w.file("usr/bin/busybox", elf+"\x00tool\x00") },
			want: []string{`f:7: "tool" is denied, and "B/usr/bin/busybox", which is allowed (f:6), has it built in`, "one file is one program to the kernel, whatever its name: drop one of the two"},
		},
		{
			name: "helper", rules: "allow = ['tool']\n[[command]]\nname = 'tool'\nhelpers = ['no']",
			want: []string{`f:9: "no", a helper of "tool", is not there or no exec rule reaches it`, `a helper is a name in PATH, a file or a directory; end it with "?" if it may be absent`},
		},
		{
			name: "digest", rules: "[[command]]\nname = 'tool'\nsha256 = '" + strings.Repeat("0", 64) + "'",
			want: []string{
				`f:8: "tool": "B/usr/bin/tool" is not the file that it was:` + "\n  sha256 " + strings.Repeat("0", 64) + " is wanted\n  sha256 " + sum(elf+"tool") + " is there",
				"run sha256sum on the file and write the digest into the rule, if the change is right",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			programs(w)
			if tt.make != nil {
				tt.make(w)
			}
			_, err := w.compile(system + "[commands]\n" + tt.rules)
			if d := cmp.Diff(tt.want, w.said(err)); d != "" {
				t.Error(d)
			}
		})
	}
}

// A refused start names the rule and says what the rules say.
func TestRefusedByCommand(t *testing.T) {
	w := newWorld(t)
	programs(w)
	message := "\n[[command]]\nname = 'tool'\nmessage = 'Ask first.'"
	for _, tt := range []struct {
		rules, name string
		want        []string
	}{
		{"deny = ['tool']" + message, "tool", []string{`"B/usr/bin/tool" may not be executed: "tool" is denied (f:6)`, "Ask first."}},
		{"deny = ['tool']", "alias", []string{`"B/usr/bin/alias" may not be executed: "tool" is denied (f:6)`, "drop the rule if the command should run"}},
		{
			"deny = ['tool']" + message, "B/usr/lib/tool-core/copy",
			[]string{`"B/usr/lib/tool-core/copy" may not be executed: "tool" is denied (f:6), and this is the same file or a copy of "B/usr/bin/tool"`, "Ask first."},
		},
		{"allow = ['sh']" + message, "tool", []string{`"B/usr/bin/tool" may not be executed: it is not in commands.allow (f:6)`, "Ask first."}},
		{"allow = ['sh']", "other", []string{`"B/usr/bin/other" may not be executed: it is not in commands.allow (f:6)`, `add "other" to the list if it should run`}},
	} {
		p := w.plan(system + "[commands]\n" + tt.rules)
		_, err := p.Find(strings.ReplaceAll(tt.name, "B/", w.base+"/"))
		if d := cmp.Diff(tt.want, w.said(err)); d != "" {
			t.Errorf("%s: %s", tt.rules, d)
		}
	}
}
