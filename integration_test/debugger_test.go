package integration_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"jail/internal/testenv"
)

// dbProgram builds a program that tells when it runs, lets the user's processes attach where Yama
// would not, and waits for a byte.
func dbProgram(t *testing.T, w *testenv.World) {
	t.Helper()
	evNeedProgram(t, "go")
	w.WriteFile(t, filepath.Join(w.Project, "m.go"), `package main

import "syscall"

var answer = 42

func main() {
	syscall.RawSyscall(syscall.SYS_PRCTL, 0x59616d61, ^uintptr(0), 0) // PR_SET_PTRACER
	println("started", answer)
	syscall.Read(0, make([]byte, 1))
}
`)
	evMust(t, w, "", "env", "GOCACHE="+goCache(t), "GOTOOLCHAIN=local", "go", "build", "-trimpath", "-gcflags=-N -l", "-o", "prog", "m.go")
}

var dbTools = []struct{ name, start, attach, want string }{
	{"gdb", `gdb -nx -batch -ex run -ex quit ./prog < /dev/null`, `gdb -nx -batch -p $pid -ex "print 'main.answer'" -ex detach 2>&1 | grep '^.1 = '; echo >&3`, "= 42"},
	{"strace", `strace -o log ./prog < /dev/null`, `strace -qq -o log -e trace=exit_group -e signal=none -p $pid & until grep -q '^TracerPid:.*[1-9]' /proc/$pid/status; do sleep 0.1; done; sleep 0.5; echo >&3; wait; tail -n 1 log`, `exit_group[(]0`},
	{
		"dlv", `echo continue | dlv exec --check-go-version=false --allow-non-terminal-interactive=true ./prog`,
		`printf 'print main.answer\nexit\nn\n' | dlv attach --check-go-version=false --allow-non-terminal-interactive=true $pid 2>/dev/null | grep -o 42; echo >&3`, "42",
	},
}

// Debuggers attach to what was built inside, as the README says.
func TestDebuggerAttaches(t *testing.T) {
	mtNeed(t)
	for _, tt := range dbTools {
		t.Run(tt.name, func(t *testing.T) {
			mtJob(t, evJob{
				name: tt.name, needs: []string{tt.name}, setup: dbProgram, want: tt.want, ignore: evCaches,
				steps: [][]string{{"bash", "-ec", fmt.Sprintf(
					`mkfifo in; : >said; exec 3<>in; ./prog <&3 2>said & pid=$!; until grep -q started said; do sleep 0.1; done; %s; wait`, tt.attach)}},
			})
		})
	}
}

// They can't start it: a note says so, and what to do, and the program does not run.
func TestDebuggerStarts(t *testing.T) {
	mtNeed(t)
	evLong(t)
	w := testenv.NewWorld(t)
	dbProgram(t, w)
	for _, tt := range dbTools {
		t.Run(tt.name, func(t *testing.T) {
			evNeedProgram(t, tt.name)
			bare := evRun(t, w, "", nil, "bash", "-c", tt.start)
			if !strings.Contains(bare.Stdout+bare.Stderr, "started 42") {
				t.Fatalf("control: %+v", bare)
			}
			r := mtRun(t, w, nil, tt.start)
			if strings.Contains(r.Stdout+r.Stderr, "started 42") ||
				!strings.Contains(r.Stderr, "prog\" was built here and can't be started under a debugger or tracer; start it first, then attach to it") {
				t.Errorf("%+v", r)
			}
		})
	}
}
