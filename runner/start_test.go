package runner

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jail/internal/testenv"
)

// Whatever runner.c called of the C library would not be ready yet: functions
// chosen by processor, guards of the stack, errno. A compiler may call some of it
// unasked.
func TestRunnerCallsNothing(t *testing.T) {
	testenv.NeedProgram(t, "gcc")
	testenv.NeedProgram(t, "nm")
	for _, level := range []string{"-O0", "-O1", "-O2", "-O3", "-Os"} {
		object := filepath.Join(t.TempDir(), "runner.o")
		cmd := exec.Command("gcc", "-fstack-protector-all", "-D_FORTIFY_SOURCE=2", "-Wno-cpp", level, "-fno-stack-protector", "-c", "-o", object, "runner.c")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		out, err := exec.Command("nm", "-u", object).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Fields(string(out)); len(got) != 2 || got[1] != "jail_call" {
			t.Errorf("%s: runner.c calls %q", level, got)
		}
	}
}
