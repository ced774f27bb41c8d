package integration_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jail/attack"
	"jail/internal/testenv"
)

type errno = unix.Errno

// What a test's own attacker prints at its end; see package attack.
const (
	okLine  = "RESULT ok"
	endLine = "END"
)

// TestEscapes makes every attack that a jail without the mounts layer withstands.
func TestEscapes(t *testing.T) {
	needLayers(t)
	underAttack(t, heldByMounts(), "--waive", "mounts")
}

// heldByMounts are the promises that nothing but the mounts layer holds, or that
// need it.
func heldByMounts() []string {
	return []string{"noexec", "metadata", "carve-outs", "processes", "artifacts"}
}

// TestMountsEscapes makes all attacks on a jail with all layers.
func TestMountsEscapes(t *testing.T) {
	needLayers(t)
	mtNeed(t)
	underAttack(t, nil)
}

// underAttack runs `jail doctor --attack`, which makes every attack twice: bare,
// where it must succeed, and in a jail, where it must fail with the named errno and
// leave no mark outside. given are the promises that these flags give up.
func underAttack(t *testing.T, given []string, flags ...string) {
	t.Helper()
	mtElsewhere(t) // below /tmp all of HOME would be the jail's own
	w := testenv.NewWorld(t)
	r := w.Run(t, append([]string{testenv.JailBin(t), "doctor", "--attack", "--json"}, flags...)...)
	var report struct {
		Attacks []attack.Result
	}
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil {
		t.Fatalf("no report: %v, status %d\n%s", err, r.Status, r.Stderr)
	}
	held := map[string]int{}
	for _, a := range report.Attacks {
		t.Run(a.Name, func(t *testing.T) { checkResult(t, a, given) })
		if a.State == attack.Held {
			held[a.Promise]++
		}
	}
	for _, id := range attack.Promises() {
		if slices.Contains(given, id) != (held[id] == 0) {
			t.Errorf("%d attacks on %q held", held[id], id)
		}
	}
	if broken := slices.ContainsFunc(report.Attacks, func(a attack.Result) bool { return a.State == attack.Broken }); broken != (r.Status == 1) || !broken != (r.Status == 0) {
		t.Errorf("status %d\n%s", r.Status, r.Stderr)
	}
}

// checkResult wants an attack held, or not tried for a reason of the machine or of
// the flags.
func checkResult(t *testing.T, a attack.Result, given []string) {
	switch {
	case a.State == attack.Held:
	case a.State == attack.NotTried && strings.HasPrefix(a.Why, "waived"), a.State == attack.NotTried && slices.Contains(given, a.Promise):
		if !slices.Contains(given, a.Promise) {
			t.Errorf("%+v", a)
		}
	case a.State == attack.NotTried && a.Lacks != "":
		testenv.Need(t, a.Lacks, errWhy(a.Why))
	default:
		t.Errorf("%+v", a)
	}
}

type errWhy string

func (e errWhy) Error() string { return string(e) }
