package launch

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// statFields are the fields of /proc/PID/stat from the third on, nil if there is
// no such process. The command, in parentheses before them, may hold anything.
func statFields(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// startTime is field 22 of /proc/PID/stat (proc(5)): with the pid it names a
// process for good. "0" if there is no such process.
func startTime(pid int) string {
	if f := statFields(pid); len(f) > 19 {
		return f[19]
	}
	return "0"
}

// state is the letter of /proc/PID/stat's third field, empty without a process.
func state(pid int) string {
	if f := statFields(pid); len(f) > 0 {
		return f[0]
	}
	return ""
}

func isStopped(pid int) bool { return state(pid) == "T" }

// processes yields every process of the namespace but process 1.
func processes() iter.Seq[int] {
	return func(yield func(int) bool) {
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			if pid, err := strconv.Atoi(e.Name()); err == nil && pid != 1 && !yield(pid) {
				return
			}
		}
	}
}

// stoppedProcesses are those that their user has stopped.
func stoppedProcesses() map[int]bool {
	out := map[int]bool{}
	for pid := range processes() {
		if isStopped(pid) {
			out[pid] = true
		}
	}
	return out
}

// stopTime bounds how long it is tried to stop everything.
const stopTime = 100 * time.Millisecond

// stopAll stops every process, one by one, until none runs that could start
// another, and returns those that were stopped before. kill(2) of -1 would not do:
// what is being forked then gets the signal at its birth, which may be after it was
// continued (complete_signal in the kernel).
func stopAll() (before map[int]bool) {
	before = stoppedProcesses()
	for end := time.Now().Add(stopTime); stopRunning() && time.Now().Before(end); {
		time.Sleep(100 * time.Microsecond)
	}
	return before
}

// stopRunning sends the signal to all that are not stopped, and tells whether there
// were any.
func stopRunning() (found bool) {
	for pid := range processes() {
		switch state(pid) {
		case "T", "t", "Z", "X", "": // stopped, traced, ended
		case "D": // waits for the kernel, or for a child of vfork
			unix.Kill(pid, unix.SIGSTOP)
		default:
			unix.Kill(pid, unix.SIGSTOP)
			found = true
		}
	}
	return found
}

// continueAll continues what stopAll has stopped.
func continueAll(but map[int]bool) {
	for pid := range processes() {
		if !but[pid] {
			unix.Kill(pid, unix.SIGCONT)
		}
	}
}

// leads tells whether the command has made a process group of its own, as an
// interactive shell does: the terminal's signals then reach it alone.
func leads(command int) bool {
	group, err := unix.Getpgid(command)
	return err == nil && group == command
}
