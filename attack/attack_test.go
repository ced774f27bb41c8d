package attack

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestMain runs the tests, or is an attacker or a victim in one of them.
func TestMain(m *testing.M) {
	if Called(os.Args) {
		os.Exit(Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// Every promise of SECURITY.md is attacked, and nothing that nobody promised.
func TestPromisesAreAttacked(t *testing.T) {
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| id | promise |")
	table, _, _ = strings.Cut(table, "\n\n")
	var promised []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z-]+) \|`).FindAllStringSubmatch(table, -1) {
		promised = append(promised, m[1])
	}
	attacked := Promises()
	slices.Sort(promised)
	slices.Sort(attacked)
	if d := cmp.Diff(promised, attacked); d != "" {
		t.Errorf("promised, and attacked:\n%s", d)
	}
}

// An attacker finds its attack by name, and each says what is a refusal.
func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range All() {
		if seen[a.Name] {
			t.Errorf("two attacks are called %q", a.Name)
		}
		seen[a.Name] = true
		if len(a.Want) == 0 || slices.Contains(a.Want, 0) || slices.Contains(a.Mounts, 0) {
			t.Errorf("%s: success counts as a refusal, or nothing does", a.Name)
		}
		for _, e := range a.Bare {
			if slices.Contains(a.Want, e) {
				t.Errorf("%s: %s is the answer without jail as well as in it", a.Name, Name(e))
			}
		}
	}
	if len(seen) < 80 {
		t.Errorf("%d attacks; want at least 80", len(seen))
	}
}

// tester makes attacks on what is no jail: each must be seen to work.
func tester(t *testing.T, jail func(a Attack, w World, words []string) *exec.Cmd) Tester {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kit, err := NewKit(t.TempDir(), self)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNeighbours(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return Tester{Base: t.TempDir(), Bare: kit, Kit: kit, Neighbours: n, Jail: jail}
}

func find(t *testing.T, name string) Attack {
	t.Helper()
	i := slices.IndexFunc(All(), func(a Attack) bool { return a.Name == name })
	if i < 0 {
		t.Fatalf("no attack %q", name)
	}
	return All()[i]
}

// A jail that does nothing is broken by every attack, and so says the tester.
func TestNoJail(t *testing.T) {
	tt := tester(t, func(_ Attack, w World, words []string) *exec.Cmd {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = w.Project
		return cmd
	})
	for _, name := range []string{"read/open", "write/create", "execute/copy", "code/map", "metadata/chmod", "carve/write", "command/execute", "signal/kill", "port/connect", "process/environ", "artifact/writes-agent-state"} {
		if r := tt.Try(context.Background(), find(t, name)); r.State != Broken {
			t.Errorf("%+v", r)
		}
	}
}

// What ends the attacker is no refusal, nor is an errno of another kind, nor a
// refusal after the deed.
func TestBrokenJails(t *testing.T) {
	for name, tt := range map[string]struct {
		script, why string
	}{
		"killed":     {`kill -KILL $$`, "signal: killed"},
		"silent":     {`exit 0`, "did not reach its end"},
		"its own":    {`echo "RESULT error=no disk"; echo END`, "no disk"},
		"other":      {`echo "RESULT errno=ENOSPC"; echo END`, "fails with ENOSPC"},
		"after all":  {`echo mark > ../outside/mark; echo "RESULT errno=EACCES"; echo END`, "outside/mark"},
		"told":       {`cat ../.ssh/id_test; echo "RESULT errno=EACCES"; echo END`, "the secret came out"},
		"unfinished": {`echo "RESULT errno=EACCES"`, "did not reach its end"},
	} {
		tester := tester(t, func(_ Attack, w World, _ []string) *exec.Cmd {
			cmd := exec.Command("/bin/sh", "-c", tt.script)
			cmd.Dir = w.Project
			return cmd
		})
		if r := tester.Try(context.Background(), find(t, "read/open")); r.State != Broken || !strings.Contains(r.Why, tt.why) {
			t.Errorf("%s: %+v; want %q", name, r, tt.why)
		}
	}
}

// Without a control that works nothing is held.
func TestControl(t *testing.T) {
	never := Attack{Name: "read/open", Promise: "paths", Want: []Errno{unix.EACCES}, Bare: []Errno{unix.EBUSY}}
	absent := Attack{Name: "read/open", Promise: "paths", Want: []Errno{unix.EACCES}, Absent: []Errno{0}}
	for _, a := range []Attack{never, absent, {Name: "no such", Want: []Errno{unix.EACCES}}} {
		r := tester(t, func(Attack, World, []string) *exec.Cmd {
			t.Error("the jail was tried")
			return exec.Command("/bin/true")
		}).Try(context.Background(), a)
		if r.State != NotTried || r.Why == "" {
			t.Errorf("%+v", r)
		}
	}
}
