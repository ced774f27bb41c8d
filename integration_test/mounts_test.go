package integration_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jail/internal/testenv"
)

// mtJailed is the beginning of a command line that runs the rest in a jail with
// the mounts layer.
func mtJailed(t testing.TB, flags ...string) []string {
	t.Helper()
	return append(append([]string{testenv.JailBin(t)}, flags...), "--")
}

func mtNeed(t testing.TB) {
	t.Helper()
	testenv.Need(t, "userns", exec.Command("unshare", "-Umpr", "--fork", "true").Run())
}

// mtPlaces are where a world can lie: below a private directory, where the jail
// sees the project and nothing beside it, and elsewhere, where all is there.
func mtPlaces(t *testing.T, run func(t *testing.T, private bool)) {
	t.Helper()
	mtNeed(t)
	t.Run("below tmp", func(t *testing.T) {
		t.Setenv("TMPDIR", "/tmp")
		run(t, true)
	})
	t.Run("elsewhere", func(t *testing.T) {
		mtElsewhere(t)
		run(t, false)
	})
}

// mtElsewhere has worlds made below the tester's own home.
func mtElsewhere(t *testing.T) {
	t.Helper()
	home, err := os.UserHomeDir()
	must(t, err)
	dir, err := os.MkdirTemp(home, ".jail-test-")
	testenv.Need(t, "home", err)
	t.Cleanup(func() { exec.Command("rm", "-rf", dir).Run() })
	t.Setenv("TMPDIR", dir)
}

// mtRun runs a shell line in a jail, in the project.
func mtRun(t testing.TB, w *testenv.World, flags []string, line string, args ...string) testenv.Result {
	t.Helper()
	return evRun(t, w, "", nil, append(append(mtJailed(t, flags...), "bash", "-c", line, "bash"), args...)...)
}

// mtOut is mtRun of a line that must succeed without a complaint; it returns
// what it prints.
func mtOut(t testing.TB, w *testenv.World, flags []string, line string, args ...string) string {
	t.Helper()
	r := mtRun(t, w, flags, line, args...)
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("%s: status %d\n%s%s", line, r.Status, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// An mtTry is something that works on a copy of the project without jail and
// fails in it with one of the named errnos.
type mtTry struct {
	name string
	want []errno
	run  func(base string) error
}

// mtBatches are the tries that one attacker makes one after the other.
func mtBatches() map[string]func(extra []string) []mtTry {
	return map[string]func(extra []string) []mtTry{
		"protect": mtProtectTries, "hide": mtHideTries, "outside": mtOutsideTries, "code": mtCodeTries,
		"init": mtInitTries, "mount": mtMountTries,
	}
}

// An mtOrder tells the attacker what to do.
type mtOrder struct {
	Batch string
	Base  string
	Copy  string   // if set, each try is made on a fresh copy of Base below it
	Extra []string // of the batch
	Bare  []string `json:"-"` // what comes before the attacker that has no jail
}

// TestMountsAttacker is no test: the attacker of the others begins here, in a
// process of its own, with its order as argument.
func TestMountsAttacker(*testing.T) {
	if flag.NArg() != 1 {
		return
	}
	var o mtOrder
	if err := json.Unmarshal([]byte(flag.Arg(0)), &o); err != nil {
		fmt.Println("attacker:", err)
		return
	}
	for i, try := range mtBatches()[o.Batch](o.Extra) {
		base := o.Base
		if o.Copy != "" {
			base = filepath.Join(o.Copy, fmt.Sprint(i))
			if out, err := exec.Command("cp", "-a", o.Base, base).CombinedOutput(); err != nil {
				fmt.Printf("attacker: %v %s\n", err, out)
			}
		}
		fmt.Printf("%s: %s\n", try.name, outcome(try.run(base)))
	}
	fmt.Println(endLine)
}

// mtAttack makes the tries of a batch bare, on copies, and in a jail, on the
// project itself, and compares.
func mtAttack(t *testing.T, w *testenv.World, o mtOrder, flags ...string) {
	t.Helper()
	if o.Base == "" {
		o.Base = w.Project
	}
	tools := tools(t)
	play := func(o mtOrder, prefix ...string) map[string]string {
		text, err := json.Marshal(o)
		must(t, err)
		r := evRun(t, w, "", nil, append(prefix, filepath.Join(tools, "attacker"), "-test.run=^TestMountsAttacker$", string(text))...)
		out := map[string]string{}
		for line := range strings.Lines(r.Stdout) {
			if name, result, ok := strings.Cut(strings.TrimSpace(line), ": RESULT "); ok {
				out[name] = result
			}
		}
		if !strings.Contains(r.Stdout, "\n"+endLine+"\n") || r.Status != 0 {
			t.Fatalf("the attacker did not reach its end: status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
		}
		if strings.Contains(r.Stdout+r.Stderr, w.SecretText) && o.Copy == "" {
			t.Errorf("the secret came out of the jail:\n%s%s", r.Stdout, r.Stderr)
		}
		return out
	}
	bare := o
	bare.Copy = filepath.Join(w.Temp, "copies")
	must(t, os.Mkdir(bare.Copy, 0o755))
	control := play(bare, bare.Bare...)
	must(t, exec.Command("chmod", "-R", "u+rwX", bare.Copy).Run())
	must(t, os.RemoveAll(bare.Copy))
	got := play(o, mtJailed(t, append([]string{"--exec", tools}, flags...)...)...)
	for _, try := range mtBatches()[o.Batch](o.Extra) {
		if control[try.name] != "ok" {
			t.Errorf("control: %s: %s", try.name, control[try.name])
		}
		result := got[try.name]
		e, _ := strings.CutPrefix(result, "errno=")
		if !slices.ContainsFunc(try.want, func(w errno) bool { return show(w) == e }) {
			t.Errorf("in the jail: %s: %s; want %s", try.name, result, show(try.want...))
		}
	}
}

// mtPicture is what files and their metadata look like.
func mtPicture(t *testing.T, paths ...string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for _, top := range paths {
		must(t, filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			seen[path], err = picture(path, d)
			return err
		}))
	}
	return seen
}

// mtWait waits until something is so.
func mtWait(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if so() {
			return
		}
	}
	t.Errorf("%s: not within 10 seconds", what)
}
