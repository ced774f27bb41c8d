// Package testenv prepares what tests of jail need: a world with something to
// lose, a binary to attack, and a rule about skipping.
//
// # Enforces
//
// A skipped security test proves nothing, so [Need] is the only way to skip,
// and what JAIL_TEST_MUST lists may not be skipped. JAIL_TEST_MUST=all forbids
// all skips but those that JAIL_TEST_MAY lists.
//
// # Does not enforce
//
// That a test has a control, and that it needs what it asks for.
//
// # Needs
//
// git, and a binary in JAIL_BIN or the Go toolchain to build one.
package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Need skips the test when err says that something is not there, or fails it
// when the lists JAIL_TEST_MUST and JAIL_TEST_MAY (with commas) say so.
func Need(t testing.TB, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if must(what, os.Getenv("JAIL_TEST_MUST"), os.Getenv("JAIL_TEST_MAY")) {
		t.Fatalf("%s is a must here: %v", what, err)
	}
	t.Skipf("needs %s: %v", what, err)
}

// must tells whether what has to be there: named itself, or all are and it is no
// exception.
func must(what, musts, mays string) bool {
	all := strings.Split(musts, ",")
	return slices.Contains(all, what) || slices.Contains(all, "all") && !slices.Contains(strings.Split(mays, ","), what)
}

// NeedProgram skips the test, or fails it, when a program is not in PATH.
func NeedProgram(t testing.TB, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	Need(t, name, err)
}

// buildOnce builds the binary when JAIL_BIN names none.
var buildOnce = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("JAIL_BIN"); bin != "" {
		return bin, nil
	}
	dir, err := os.MkdirTemp("", "jail-bin-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "jail")
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", bin, ".")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	return bin, cmd.Run()
})

// JailBin returns the path of the jail binary.
func JailBin(t testing.TB) string {
	t.Helper()
	bin, err := buildOnce()
	if err != nil {
		t.Fatalf("building jail: %v", err)
	}
	return bin
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", os.ErrNotExist
}
