package landlock_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"jail/landlock"
	"jail/plan"
	"jail/rules"
)

// Plan.Access must be the kernel's truth: on random trees with nested grants,
// links and hard links every file is opened and executed under the ruleset. It is
// Landlock alone, hundreds of plans in a second; package oracle tries all layers.
func TestAccessIsTheKernelsTruth(t *testing.T) {
	abi := need(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	seen := map[string]int{}
	split := map[bool]int{} // by whether there is an allow list
	for range 200 {
		base, err := filepath.EvalSymlinks(t.TempDir())
		must(t, err)
		names := randomTree(t, r, base)
		text, p, ok := randomPlan(t, r, base, names, abi)
		if !ok {
			continue
		}
		ruleset, err := landlock.Compile(p, abi).FD()
		must(t, err)
		for g := range p.Grants() {
			if g.Split {
				split[len(p.Allowed) > 0]++
			}
		}
		want := map[string]plan.Access{}
		for _, n := range names {
			if fi, err := os.Stat(filepath.Join(base, n)); err == nil {
				want[n] = p.Access(filepath.Join(base, n))
				if fi.IsDir() {
					want[n] |= 0x80
				}
			}
		}
		confined(t, ruleset, func() {
			for n, a := range want {
				if got := probe(t, filepath.Join(base, n), a&0x80 != 0); got != a&0x7f&^map[bool]plan.Access{true: plan.Write | plan.Exec}[a&0x80 != 0] {
					t.Errorf("%s: plan says %s, the kernel %s\n%s", n, a&0x7f, got, text)
				} else {
					seen[got.String()]++
				}
			}
		})
		unix.Close(ruleset)
		if t.Failed() {
			t.Fatal(listing(base))
		}
	}
	if split[false] < 1 || split[true] < 1 {
		t.Errorf("grants are all split, or none: %v", split)
	}
	for _, a := range []string{"none", "read", "read+write", "read+exec"} {
		if seen[a] < 5 {
			t.Errorf("%s was tried %d times only", a, seen[a])
		}
	}
}

// probe is what the kernel allows on path; of a directory only reading is tried.
func probe(t *testing.T, path string, dir bool) plan.Access {
	var a plan.Access
	check := func(bit plan.Access, ok bool, err error) {
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if ok {
			a |= bit
		}
	}
	ok, err := opens(path, syscall.O_RDONLY)
	check(plan.Read, ok, err)
	if dir {
		return a
	}
	ok, err = opens(path, syscall.O_WRONLY)
	check(plan.Write, ok, err)
	ok, err = executes(path)
	check(plan.Exec, ok, err)
	return a
}

func randomTree(t *testing.T, r *rand.Rand, base string) []string {
	names, dirs := []string{"d0", "d1"}, []string{"d0", "d1"}
	for _, d := range append([]string{"tmp", "home", "proj"}, dirs...) {
		must(t, os.Mkdir(filepath.Join(base, d), 0o755))
	}
	for i := range 14 {
		n := filepath.Join(dirs[r.IntN(len(dirs))], fmt.Sprintf("n%d", i))
		full, old := filepath.Join(base, n), filepath.Join(base, names[r.IntN(len(names))])
		fi, err := os.Lstat(old)
		must(t, err)
		switch k := r.IntN(6); {
		case k < 2:
			must(t, os.Mkdir(full, 0o755))
			dirs = append(dirs, n)
		case k == 2:
			must(t, os.Symlink(old, full))
		case k == 3 && fi.Mode().IsRegular():
			must(t, os.Link(old, full))
		default:
			must(t, os.WriteFile(full, fmt.Appendf(nil, "\x7fELF%d", i), 0o755))
		}
		names = append(names, n)
	}
	return names
}

func randomPlan(t *testing.T, r *rand.Rand, base string, names []string, abi int) (string, plan.Plan, bool) {
	lists, commands := [3]string{}, ""
	switch name := names[r.IntN(len(names))]; r.IntN(3) { // where the file is in no exec tree nothing happens, or it is refused
	case 0:
		commands = fmt.Sprintf("[commands]\ndeny = ['${B}/%s?']\n", name)
	case 1:
		commands = fmt.Sprintf("[commands]\nallow = ['${B}/%s']\n", name)
		lists[2] = fmt.Sprintf("'${B}/%s', ", filepath.Dir(name))
	}
	for range 2 + r.IntN(4) {
		lists[r.IntN(3)] += fmt.Sprintf("'${B}/%s?', ", names[r.IntN(len(names))])
	}
	text := fmt.Sprintf("profiles = []\n[files]\nread = [%s]\nwrite = [%s]\nexec = [%s]\n", lists[0], lists[1], lists[2])
	text += commands
	pol, err := rules.Parse(rules.Input{Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte(text)}}})
	must(t, err)
	p, err := plan.Compile(pol, plan.Host{
		Home: base + "/home", Cwd: base + "/proj", UID: os.Getuid(), Temp: base + "/tmp", ABI: abi, Tree: plan.Tree{Root: base + "/proj"}, Env: []string{"B=" + base},
	})
	return text, p, err == nil
}

func listing(base string) string {
	var b strings.Builder
	filepath.WalkDir(base, func(path string, _ fs.DirEntry, _ error) error {
		fi, err := os.Lstat(path)
		if err != nil {
			return err
		}
		target, _ := os.Readlink(path)
		fmt.Fprintf(&b, "%s %d %s -> %s\n", fi.Mode(), fi.Sys().(*syscall.Stat_t).Ino, strings.TrimPrefix(path, base), strings.TrimPrefix(target, base))
		return nil
	})
	return b.String()
}
