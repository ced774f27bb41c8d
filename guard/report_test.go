package guard_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/guard"
	"jail/plan"
	"jail/rules"
)

// compile makes a plan in which the tree may be written.
func compile(t *testing.T, root, text string) plan.Plan {
	t.Helper()
	pol, err := rules.Parse(rules.Input{Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte("profiles = []\n" + text)}}})
	must(t, err)
	ok := plan.Fact{OK: true}
	p, err := plan.Compile(pol, plan.Host{
		Home: filepath.Dir(root), Cwd: root, UID: os.Getuid(), Temp: t.TempDir(), ABI: 7, Landlock: ok, Seccomp: ok, Mounts: ok, Tree: plan.Tree{Root: root},
	})
	must(t, err)
	return p
}

// project is a directory below a home of its own.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	root := filepath.Join(home, "p")
	must(t, os.Mkdir(root, 0o755))
	write(t, root, files)
	return root
}

const (
	old = "1111111111111111111111111111111111111111"
	two = "2222222222222222222222222222222222222222"
	bad = "6666666666666666666666666666666666666666"
	who = " T <t@example.org> 1 +0000\tcommit: x\n"
)

// A branch that somebody moved by writing its file is named; what git does is not.
func TestHistory(t *testing.T) {
	const main, log = ".git/refs/heads/main", ".git/logs/refs/heads/main"
	start := map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", main: old + "\n", log: strings.Repeat("0", 40) + " " + old + who,
		".git/refs/tags/v1": old + "\n", ".git/packed-refs": "# pack-refs\n" + old + " refs/heads/packed\n" + old + " refs/remotes/origin/x\n",
		".git/refs/heads/quiet": old + "\n",
	}
	for _, tt := range []struct {
		name  string
		write map[string]string
		want  []string
	}{
		{"nothing", nil, nil},
		{"a commit", map[string]string{main: two + "\n", log: start[log] + old + " " + two + who}, nil},
		{"two", map[string]string{main: bad + "\n", log: start[log] + old + " " + two + who + two + " " + bad + who}, nil},
		{"gc cut the log", map[string]string{main: two + "\n", log: old + " " + two + who}, nil},
		{"the file alone", map[string]string{main: bad + "\n"}, []string{main}},
		{"a commit and then the file", map[string]string{main: bad + "\n", log: start[log] + old + " " + two + who}, []string{main}},
		{"a log that begins elsewhere", map[string]string{main: bad + "\n", log: start[log] + two + " " + bad + who}, []string{main}},
		{"the log is gone", map[string]string{main: bad + "\n", log: ""}, []string{main}},
		{"a tag", map[string]string{".git/refs/tags/v1": bad + "\n"}, []string{".git/refs/tags/v1"}},
		{"a packed one", map[string]string{".git/packed-refs": bad + " refs/heads/packed\n"}, []string{".git/refs/heads/packed"}},
		{"a packed one gets a file", map[string]string{".git/refs/heads/packed": bad + "\n"}, []string{".git/refs/heads/packed"}},
		{"a new branch", map[string]string{".git/refs/heads/new": bad + "\n"}, nil},
		{"a remote's", map[string]string{".git/packed-refs": old + " refs/heads/packed\n" + bad + " refs/remotes/origin/x\n"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := project(t, start)
			r, err := guard.Start(compile(t, root, "files.write = ['.']"))
			must(t, err)
			write(t, root, tt.write)
			var told bytes.Buffer
			r.End(nil, &told)
			want := ""
			for _, path := range tt.want {
				want += fmt.Sprintf("jail: note: rewritten %q (git history, past git's own log)\n", path)
			}
			if d := cmp.Diff(want, told.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReport(t *testing.T) {
	for _, tt := range []struct {
		name, rules string
		write       map[string]string
		unkept      []string
		want        string
	}{
		{name: "nothing", rules: "files.write = ['.']"},
		{name: "the tree is not written", rules: "files.read = ['.']", write: map[string]string{".envrc": "x"}},
		{name: "turned off", rules: "guard = false\nfiles.write = ['.']", write: map[string]string{".envrc": "x"}},
		{
			name: "one", rules: "files.write = ['.']", write: map[string]string{".envrc": "x"},
			want: "jail: note: new \".envrc\" (direnv): it runs on the host, look before you use it\n",
		},
		{
			name: "a package inside", rules: "files.write = ['.']", write: map[string]string{"packages/a/package.json": `{"scripts":{"x":"y"}}`, "packages/a/.vscode/tasks.json": "{}"},
			want: "jail: note: new \"packages/a/.vscode/tasks.json\" (VS Code): it runs on the host, look before you use it\n" +
				"jail: note: new \"packages/a/package.json\" (npm scripts): it runs on the host, look before you use it\n",
		},
		{
			name: "not kept", rules: "files.write = ['.']", unkept: []string{"/x"},
			want: "jail: note: not kept \"/x\" (git config, written in the jail's copy only)\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := project(t, nil)
			r, err := guard.Start(compile(t, root, tt.rules))
			must(t, err)
			write(t, root, tt.write)
			var told bytes.Buffer
			r.End(tt.unkept, &told)
			if d := cmp.Diff(tt.want, told.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// More than fits the screen is in the file; directories beyond the bound are
// told as such.
func TestReportIsBounded(t *testing.T) {
	root := project(t, nil)
	p := compile(t, root, "files.write = ['.']")
	p.GuardFile = filepath.Join(t.TempDir(), "report.json")
	write(t, filepath.Dir(p.GuardFile), map[string]string{"report.json": "an older and longer one, which must not shine through at the end of the new"})
	r, err := guard.Start(p)
	must(t, err)
	if text, _ := os.ReadFile(p.GuardFile); len(text) != 0 {
		t.Errorf("the file still says %q", text)
	}
	for i := range 300 {
		write(t, root, map[string]string{fmt.Sprintf("d%03d/.envrc", i): "x"})
	}
	var told bytes.Buffer
	r.End(nil, &told)
	if n := strings.Count(told.String(), "\n"); n != 13 || !strings.Contains(told.String(), "and 188 more") {
		t.Errorf("%d lines: %s", n, told.String())
	}
	var got struct {
		Version int
		Changes []guard.Change
	}
	text, err := os.ReadFile(p.GuardFile)
	must(t, err)
	must(t, json.Unmarshal(text, &got))
	last := guard.Change{Path: ".", What: "grown", Why: "only the first 200 directories were looked through"}
	if len(got.Changes) != 200 || got.Version != 1 || got.Changes[0] != (guard.Change{Path: "d000/.envrc", What: "new", Why: "direnv"}) || got.Changes[199] != last {
		t.Errorf("%s", text)
	}
}

// The file for machines lies where no jail could have put anything.
func TestReportFile(t *testing.T) {
	for _, tt := range []struct {
		name, rules string
		make        func(t *testing.T, out string)
		file        string
		mounts      bool
		want        string
	}{
		{name: "a new file", file: "out/r.json"},
		{name: "in the project", file: "p/r.json", want: "lies where the jail may write"},
		{name: "a link to the project on the way", file: "out/way/r.json", make: func(t *testing.T, out string) { must(t, os.Symlink("../p", out+"/way")) }, want: "lies where the jail may write"},
		{name: "a link", file: "out/r.json", make: func(t *testing.T, out string) { must(t, os.Symlink("victim", out+"/r.json")) }, want: "is a symbolic link"},
		{name: "no directory", file: "none/r.json", want: "no such file or directory"},
		{name: "a directory", file: "out", want: "is a directory"},
		{name: "a fifo", file: "out/r.json", make: func(t *testing.T, out string) { fifo(t, out+"/r.json") }, want: "no such device or address"},
		{name: "no report", rules: "guard = false\n", file: "out/r.json", want: "guard = false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := project(t, nil)
			home := filepath.Dir(root)
			write(t, home, map[string]string{"out/victim": "v"})
			if tt.make != nil {
				tt.make(t, filepath.Join(home, "out"))
			}
			p := compile(t, root, tt.rules+"files.write = ['.']")
			p.GuardFile = filepath.Join(home, tt.file)
			r, err := guard.Start(p)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("want %q, got %v", tt.want, err)
				}
				if text, _ := os.ReadFile(home + "/out/victim"); string(text) != "v" {
					t.Error("the victim was changed")
				}
				return
			}
			must(t, err)
			r.End(nil, &bytes.Buffer{})
			if text, err := os.ReadFile(p.GuardFile); string(text) != "{\n  \"version\": 1,\n  \"changes\": []\n}\n" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}
