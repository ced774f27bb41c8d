package plan_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jail/plan"
	"jail/rules"
)

// FuzzCompile: whatever rules say of a small file system, a plan is refused with
// words for the person, or no name of it may be both written and executed; and it
// is written and read again as the same. Each argument is a list, a path a line.
func FuzzCompile(f *testing.F) {
	f.Add("a", "a/w", "a/x", "a/w/.env", "a/s", "", "", true)
	f.Add("", "b?\n.", "bin", "**/.env", "", "bin/tool", "", true)
	f.Add("", "b", "bin", "", "", "", "bin/hard", false)
	f.Add("a/s/key", "a", "bin\na/link", "a/w", "a/s\n**/k*", "", "bin/tool?", true)
	f.Add("a", "b", "bin", "0", "0", "", "tool", false)
	files := newFuzzWorld(f)
	f.Fuzz(func(t *testing.T, read, write, exec, protect, hide, allow, deny string, mounts bool) {
		text := "profiles = []\n"
		for _, l := range [][2]string{
			{"files.read", read},
			{"files.write", write},
			{"files.exec", exec},
			{"files.protect", protect},
			{"files.hide", hide},
			{"commands.allow", allow},
			{"commands.deny", deny},
		} {
			if l[1] != "" {
				text += l[0] + " = " + tomlList(l[1]) + "\n"
			}
		}
		pol, err := rules.Parse(rules.Input{Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte(text)}}})
		if err != nil || outside(pol) {
			return
		}
		host := files.host
		if host.Mounts.OK = mounts; !mounts {
			host.Mounts.Why = "not here"
		}
		p, err := plan.Compile(pol, host)
		var problem *plan.Problem
		switch {
		case err == nil:
			files.check(t, text, p)
		case !errors.As(err, &problem):
			t.Errorf("%v is no problem for a person\n%s", err, text)
		case problem.What == "":
			t.Errorf("nothing is said\n%s", text)
		}
	})
}

func tomlList(lines string) string {
	var quoted []string
	for line := range strings.SplitSeq(lines, "\n") {
		q, _ := json.Marshal(line) // JSON's escapes are TOML's too
		quoted = append(quoted, strings.ReplaceAll(string(q), "\x7f", `\u007f`))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// outside tells whether rules may speak of this machine's own files, of which
// there are too many.
func outside(pol rules.Policy) bool {
	var paths []rules.Path
	for g := range pol.Grants() {
		paths = append(paths, g.Path)
	}
	for c := range pol.Carves() {
		paths = append(paths, c.Path)
	}
	allow, _ := pol.Allow()
	for _, n := range allow {
		paths = append(paths, n.Path)
	}
	for n := range pol.Deny() {
		paths = append(paths, n.Path)
	}
	for _, p := range paths {
		if strings.HasPrefix(p.Text, "/") || strings.Contains(p.Text, "..") || strings.Contains(p.Text, "$") {
			return true
		}
	}
	return false
}

// fuzzWorld is made once for each process that fuzzes.
type fuzzWorld struct {
	host  plan.Host
	names []string
}

func newFuzzWorld(f *testing.F) fuzzWorld {
	f.Helper()
	base, err := filepath.EvalSymlinks(f.TempDir())
	must := func(err error) {
		if err != nil {
			f.Fatal(err)
		}
	}
	must(err)
	root := filepath.Join(base, "p")
	for _, dir := range []string{"p/a/w/sub", "p/a/x", "p/a/s", "p/b", "p/bin", "tmp", "own"} {
		must(os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	for _, name := range []string{"a/w/.env", "a/w/sub/file", "a/x/tool", "a/s/key", "b/file", "bin/tool", "bin/other", "a b\"'"} {
		must(os.WriteFile(filepath.Join(root, name), []byte("\x7fELF"+name), 0o755))
	}
	must(os.WriteFile(filepath.Join(root, "bin/script"), []byte("#!bin/tool -e\n"), 0o755))
	must(os.Link(filepath.Join(root, "b/file"), filepath.Join(root, "bin/hard")))
	must(os.Symlink("../bin", filepath.Join(root, "a/link")))
	must(os.Symlink("nowhere", filepath.Join(root, "a/broken")))
	must(os.Symlink("loop", filepath.Join(root, "a/loop")))
	// All lies in HOME: elsewhere hard links that root could have made are not looked for.
	w := fuzzWorld{host: plan.Host{
		Home: base, Cwd: root, UID: os.Getuid(), Temp: base + "/tmp", Own: []string{base + "/own"}, ABI: 7,
		Landlock: plan.Fact{OK: true}, Seccomp: plan.Fact{OK: true}, Tree: plan.Tree{Root: root}, Env: []string{"HOME=" + base, "PATH=" + root + "/bin"},
	}}
	must(filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		w.names = append(w.names, path, filepath.Join(path, "new"))
		return err
	}))
	return w
}

func (w fuzzWorld) check(t *testing.T, text string, p plan.Plan) {
	t.Helper()
	for _, n := range w.names {
		if a := p.Access(n); a&plan.Write != 0 && a&plan.Exec != 0 {
			t.Errorf("%s has %s\n%s", n, a, text)
		}
	}
	first, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again plan.Plan
	if err := json.Unmarshal(first, &again); err != nil {
		t.Fatal(err)
	}
	for _, n := range w.names {
		if p.Access(n) != again.Access(n) {
			t.Errorf("%s: %s became %s\n%s", n, p.Access(n), again.Access(n), text)
		}
	}
}
