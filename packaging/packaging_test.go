// Package packaging_test checks what packages of jail bring along.
package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jail/internal/testenv"
)

const userns = "\n  userns,\n"

// TestAppArmor has the parser compile the profile. A parser before 4.0 does not
// know the one rule that matters (4.1 takes the file as it is): it is given the
// profile without the rule, and proves all the rest of it.
func TestAppArmor(t *testing.T) {
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin") // not in every user's PATH
	testenv.NeedProgram(t, "apparmor_parser")
	text, err := os.ReadFile("jail.apparmor")
	if err != nil {
		t.Fatal(err)
	}
	profile := string(text)
	if strings.Count(profile, userns) != 1 {
		t.Fatalf("the profile has no line %q", userns)
	}
	version, err := exec.Command("apparmor_parser", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if old := regexp.MustCompile(`version [23]\.`).Find(version); old != nil {
		t.Logf("AppArmor parser %s: the rule userns is not tried", old)
		profile = strings.NewReplacer(userns, "\n", "abi/4.0", "abi/3.0").Replace(profile)
	}
	if out, err := parse(t, profile); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// The parser reads what it is given: a slip in the flags or the path is seen.
	for _, slip := range [][2]string{{"(unconfined)", "(unconfned)"}, {"{local/,}", "{local/,"}, {"profile jail", "profil jail"}} {
		if _, err := parse(t, strings.Replace(profile, slip[0], slip[1], 1)); err == nil {
			t.Errorf("%q for %q is accepted", slip[1], slip[0])
		}
	}
}

func parse(t *testing.T, profile string) ([]byte, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jail")
	if err := os.WriteFile(path, []byte(profile), 0o644); err != nil {
		t.Fatal(err)
	}
	return exec.Command("apparmor_parser", "--skip-kernel-load", "--skip-cache", path).CombinedOutput()
}
