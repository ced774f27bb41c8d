package seccomp_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"jail/plan"
	"jail/seccomp"
)

func TestRefusing(t *testing.T) {
	rules := seccomp.Compile(plan.Plan{ABI: 7, Mounts: true})
	for _, tt := range []struct {
		name string
		call int
		args [6]uint64
		want unix.Errno // 0: no rule refuses
	}{
		{"always", unix.SYS_MEMFD_CREATE, [6]uint64{}, unix.ENOSYS},
		{"by a bit", unix.SYS_FCHMODAT, [6]uint64{0, 0, 0o4755}, unix.EPERM},
		{"without it", unix.SYS_FCHMODAT, [6]uint64{0, 0, 0o755}, 0},
		{"low 32 bits", unix.SYS_IOCTL, [6]uint64{0, 0xdead<<32 | unix.TIOCSTI}, unix.EPERM},
		{"asks the supervisor", unix.SYS_EXECVE, [6]uint64{}, 0},
		{"a family", unix.SYS_SOCKET, [6]uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, unix.EAFNOSUPPORT},
		{"no rule", unix.SYS_GETPID, [6]uint64{}, 0},
		{"no call", 99999, [6]uint64{}, 0},
	} {
		r, ok := seccomp.Refusing(rules, tt.call, tt.args)
		if ok != (tt.want != 0) || r.Errno != tt.want {
			t.Errorf("%s: %v, %v", tt.name, r, ok)
		}
	}
}
