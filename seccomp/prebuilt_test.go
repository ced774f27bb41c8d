package seccomp_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	libseccomp "github.com/seccomp/libseccomp-golang"

	"jail/plan"
	"jail/seccomp"
)

var update = flag.Bool("update", false, "write seccomp/prebuilt anew")

// networks are all that make a difference to the rules.
func networks() []plan.Network {
	var all []plan.Network
	for i := range 32 {
		n := plan.Network{UDP: i&2 != 0, Interfaces: i&4 != 0, UnixAny: i&8 != 0}
		n.Connect.Set, n.Bind.Set = i&1 != 0, i&16 != 0
		all = append(all, n)
	}
	return all
}

// plans lead to every set of rules: with mounts there is a supervisor that seals,
// and from ABI 9 on unix sockets are Landlock's.
func plans() []plan.Plan {
	var all []plan.Plan
	for _, n := range networks() {
		for _, abi := range []int{7, 9} {
			for _, mounts := range []bool{false, true} {
				all = append(all, plan.Plan{Network: n, ABI: abi, Mounts: mounts})
			}
		}
	}
	return all
}

// libraryVersion is the libseccomp that is linked in. Other versions order the
// same decisions differently.
func libraryVersion() string {
	major, minor, micro := libseccomp.GetLibraryVersion()
	return fmt.Sprintf("%d.%d.%d", major, minor, micro)
}

// TestPrebuilt: the embedded programs are exactly those that libseccomp makes of
// the rules, one for every set of rules. `make prebuilt` writes them.
func TestPrebuilt(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("programs are prebuilt for amd64 only")
	}
	want := map[string][]byte{}
	for _, p := range plans() {
		rules := seccomp.Compile(p)
		prog, err := seccomp.Assemble(rules)
		if err != nil {
			t.Fatal(err)
		}
		want[seccomp.PrebuiltName(rules)] = prog
	}
	if *update {
		write(t, want)
	}
	files, err := filepath.Glob("prebuilt/*.bpf")
	if err != nil || len(files) != len(want) {
		t.Errorf("%d programs, want %d: make prebuilt (%v)", len(files), len(want), err)
	}
	version, err := os.ReadFile("prebuilt/VERSION")
	if err != nil {
		t.Fatal(err)
	}
	for name, prog := range want {
		got, err := os.ReadFile(name)
		switch {
		case err != nil:
			t.Errorf("%v: make prebuilt", err)
		case strings.TrimSpace(string(version)) == libraryVersion() && !bytes.Equal(got, prog):
			t.Errorf("%s is not what libseccomp makes of the rules: make prebuilt", name)
		}
	}
}

func write(t *testing.T, programs map[string][]byte) {
	t.Helper()
	if err := os.RemoveAll("prebuilt"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("prebuilt", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, prog := range programs {
		if err := os.WriteFile(name, prog, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("prebuilt/VERSION", []byte(libraryVersion()+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestProgramIsPrebuilt: what a start needs is found, and is a program.
func TestProgramIsPrebuilt(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("programs are prebuilt for amd64 only")
	}
	for _, p := range []plan.Plan{{}, {Mounts: true, ABI: 7}, {Mounts: true, ABI: 9}} {
		rules := seccomp.Compile(p)
		want, err := os.ReadFile(seccomp.PrebuiltName(rules))
		if err != nil {
			t.Fatal(err)
		}
		got, err := seccomp.Program(rules)
		if err != nil || !cmp.Equal(want, got) {
			t.Errorf("mounts %v: Program did not take the prebuilt one (%v)", p.Mounts, err)
		}
	}
}
