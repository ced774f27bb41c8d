package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jail/internal/testenv"
)

// orphanWord makes the test binary a process that outlives its jail.
const orphanWord = "-orphan"

// What an orphan leaves in its working directory.
const (
	orphanReady = "ready" // the trap is set
	orphanSwaps = "swaps" // how often it was swapped
)

// TestSweepEscape: a jail that starts removes the TMPDIRs of those that have
// ended, unconfined. A process that one of them has left behind swaps what is
// there meanwhile, so that a directory becomes a link to a file outside. Whoever
// goes by names then changes the mode of that file.
//
// Root, who removes everything at the first try, does not get that far.
func TestSweepEscape(t *testing.T) {
	needLayers(t)
	testenv.Need(t, "ordinary user", needOrdinary())
	dir := tools(t)
	swapped := 0
	for range 8 {
		swapped += sweepRound(t, filepath.Join(dir, "attacker"), dir)
		if t.Failed() {
			return
		}
	}
	if swapped == 0 {
		t.Error("no round had a swap: nothing was raced")
	}
}

func needOrdinary() error {
	if os.Getuid() == 0 {
		return fmt.Errorf("a uid other than 0")
	}
	return nil
}

// sweepRound sets one trap, starts a jail over it, and returns the swaps.
func sweepRound(t *testing.T, attacker, dir string) (swaps int) {
	t.Helper()
	w := testenv.NewWorld(t)
	target := filepath.Join(w.Outside, "keep")
	before, err := os.Stat(target)
	must(t, err)

	const leave = `"$@" > /dev/null 2>&1 & until test -e ` + orphanReady + `; do sleep 0.02; done`
	r := w.Jail(t, "--exec", dir, "--", "bash", "-c", leave, "bash", attacker, orphanWord, target)
	if r.Status != 0 {
		t.Fatalf("no trap: %s", r.Stderr)
	}
	if r := w.Jail(t, "--", "true"); r.Status != 0 {
		t.Fatalf("no second jail: %s", r.Stderr)
	}
	after, err := os.Stat(target)
	must(t, err)
	if before.Mode() != after.Mode() {
		t.Errorf("starting a jail has changed the mode of a file outside from %v to %v", before.Mode(), after.Mode())
	}
	return waitForSwaps(t, filepath.Join(w.Project, orphanSwaps))
}

func waitForSwaps(t *testing.T, path string) (n int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if b, err := os.ReadFile(path); err == nil {
			_, err := fmt.Sscan(string(b), &n)
			must(t, err)
			return n
		}
	}
	t.Fatal("the orphan did not reach its end")
	return 0
}

// playOrphan sets a trap in its TMPDIR: a directory that is not removed at the
// first try, with so much in it that there is time between the look at the last
// entry and its use. It swaps that one with a link to the target.
func playOrphan(args []string) {
	project := os.Getenv("PWD")
	trap := filepath.Join(os.TempDir(), "trap")
	_ = os.Mkdir(trap, 0o700)
	for i := range 3000 {
		_ = os.Mkdir(filepath.Join(trap, fmt.Sprintf("a%d", i)), 0o700)
	}
	last, link := filepath.Join(trap, "z"), filepath.Join(trap, "y")
	_ = os.Mkdir(last, 0o700)
	_ = os.Symlink(args[0], link)
	_ = os.Chmod(trap, 0o500)
	_ = os.WriteFile(filepath.Join(project, orphanReady), nil, 0o600)

	swaps := 0
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		err := unix.Renameat2(unix.AT_FDCWD, last, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		switch err {
		case nil:
			swaps++
		case unix.ENOENT:
			end = time.Now() // it was removed
		}
	}
	// The count appears whole.
	count := filepath.Join(project, orphanSwaps)
	_ = os.WriteFile(count+".tmp", []byte(fmt.Sprintln(swaps)), 0o600)
	_ = os.Rename(count+".tmp", count)
}
