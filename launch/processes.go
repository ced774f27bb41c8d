package launch

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"

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

// leads tells whether the command has made a process group of its own, as an
// interactive shell does: the terminal's signals then reach it alone.
func leads(command int) bool {
	group, err := unix.Getpgid(command)
	return err == nil && group == command
}
