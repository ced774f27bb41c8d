package supervise

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"jail/internal/testenv"
	"jail/seccomp"
)

// notifyNothingElse is a filter with a listener that is asked about nothing that
// these tests do.
var notifyNothingElse = seccomp.Notified{Connect: true}

// allowAll is BPF that refuses nothing; it counts in Seccomp_filters.
var allowAll = []byte{0x06, 0, 0, 0, 0, 0, 0xff, 0x7f}

// readOnlyBelow makes a Landlock ruleset that allows reading and executing below
// directories; writing is not its business.
func readOnlyBelow(t *testing.T, dirs ...string) *os.File {
	t.Helper()
	const rights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	attr := uint64(rights)
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), 8, 0)
	if e != 0 {
		testenv.Need(t, "landlock", e)
	}
	for _, dir := range dirs {
		at, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		beneath := struct {
			access uint64
			parent int32
		}{rights, int32(at)}
		if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, 1, uintptr(unsafe.Pointer(&beneath)), 0, 0, 0); e != 0 {
			t.Fatal(dir, e)
		}
		unix.Close(at)
	}
	return os.NewFile(fd, "ruleset")
}
