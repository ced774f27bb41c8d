package landlock_test

import (
	"errors"
	"runtime"
	"syscall"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"jail/internal/testenv"
	"jail/landlock"
)

// need skips where there is no Landlock.
func need(t *testing.T) int {
	t.Helper()
	abi, fact := landlock.Probe()
	var err error
	if !fact.OK {
		err = errors.New(fact.Why)
	}
	testenv.Need(t, "landlock", err)
	return abi
}

// confined runs f on a thread of its own under a ruleset. The thread ends with
// f, since nothing takes a domain off again.
func confined(t *testing.T, ruleset int, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is not used again
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = ll.LandlockRestrictSelf(ruleset, 0)
		}
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// opens tells whether path can be opened; what is neither success nor EACCES is
// returned as an error.
func opens(path string, flags int) (bool, error) {
	fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err == nil {
		syscall.Close(fd)
		return true, nil
	}
	if err == syscall.EACCES {
		return false, nil
	}
	return false, err
}

// executes tells whether execve(2) of a file that is no program is allowed: ENOEXEC says
// that the rules were passed.
func executes(path string) (bool, error) {
	pid, err := syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{})
	switch err {
	case nil:
		var ws syscall.WaitStatus
		_, err = syscall.Wait4(pid, &ws, 0, nil)
		return true, err
	case syscall.ENOEXEC:
		return true, nil
	case syscall.EACCES:
		return false, nil
	}
	return false, err
}
