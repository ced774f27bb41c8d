package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"

	"jail/plan"
	"jail/rules"
)

// What waits, and what does not: a call that waits costs some microseconds.
func TestNotified(t *testing.T) {
	const garbage, waits = 0xdead_beef << 32, "0x7fc00000"
	prog, err := Assemble(append(Compile(planOf(t, "", 9)), Notified{Exec: true, Libraries: true, Connect: true}.Rules()...))
	if err != nil {
		t.Fatal(err)
	}
	p := decode(t, prog)
	const rx, rw = unix.PROT_READ | unix.PROT_EXEC, unix.PROT_READ | unix.PROT_WRITE
	for _, tt := range []struct {
		name string
		args []uint64
		want string
	}{
		{"execve", nil, waits},
		{"execveat", nil, waits},
		{"connect", nil, waits},
		{"faccessat", []uint64{0, 0, unix.R_OK | unix.W_OK}, "allow"},
		{"faccessat", []uint64{0, 0, unix.X_OK}, waits},
		{"faccessat", []uint64{0, 0, unix.R_OK | unix.X_OK | garbage}, waits},
		{"faccessat2", []uint64{0, 0, unix.F_OK}, "allow"},
		{"faccessat2", []uint64{0, 0, unix.X_OK}, waits},
		{"mmap", []uint64{0, 4096, rx, unix.MAP_PRIVATE, 3}, waits},
		{"mmap", []uint64{0, 4096, rx | garbage, unix.MAP_PRIVATE | garbage, 3}, waits},
		{"mmap", []uint64{0, 4096, rx, unix.MAP_SHARED, 3}, waits},
		{"mmap", []uint64{0, 4096, rx, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS, ^uint64(0)}, "allow"},
		{"mmap", []uint64{0, 4096, rw, unix.MAP_PRIVATE, 3}, "allow"},
		// What is refused is refused at once.
		{"memfd_create", nil, "ENOSYS"},
		{"socket", []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, "EAFNOSUPPORT"},
	} {
		if got := p.action(t, on(t, tt.name, tt.args...)); got != tt.want {
			t.Errorf("%s %#x: want %s, got %s", tt.name, tt.args, tt.want, got)
		}
	}
	if without := decode(t, mustAssemble(t, Notified{Libraries: true}.Rules())); without.action(t, on(t, "execve")) != "allow" {
		t.Error("execve waits where only libraries are asked for")
	}
}

// What is never sealed is told of, if a rule asks for that: the kernel refuses it, and
// says nothing. An allow list does not ask.
func TestNotifiedOfUnsealed(t *testing.T) {
	for told, want := range map[bool]string{true: "0x7fc00000", false: "allow"} {
		p := plan.Plan{ABI: 9, Mounts: true, Artifacts: plan.Artifacts{Run: rules.Choice{Off: true}, Libraries: rules.Choice{Off: true}, Told: told}}
		prog := decode(t, mustAssemble(t, Compile(p)))
		if got := prog.action(t, on(t, "execve")); got != want {
			t.Errorf("told %t: %s", told, got)
		}
		if got := prog.action(t, on(t, "mmap", 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE, 3)); got != "allow" {
			t.Errorf("told %t: mmap: %s", told, got)
		}
	}
}

func mustAssemble(t *testing.T, rules []Rule) []byte {
	t.Helper()
	prog, err := Assemble(rules)
	if err != nil {
		t.Fatal(err)
	}
	return prog
}
