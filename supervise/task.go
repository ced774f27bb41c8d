package supervise

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"jail/trace"
)

// task is a thread of the jail, by its number outside. What is read of it is
// worth something only if its call still waits afterwards.
type task int

func (t task) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", int(t), name) }

// read fills b from the task's memory, as far as it goes.
func (t task) read(b []byte, at uint64) (int, error) { return trace.ReadMemory(int(t), b, at) }

// maxWord bounds what is read to compare it with a word of a rule.
const maxWord = 4096

// text reads a string that ends in NUL, up to limit bytes.
func (t task) text(at uint64, limit int) (string, error) { return trace.Text(int(t), at, limit) }

// words reads up to n strings of an array that ends in a null pointer.
func (t task) words(at uint64, n int) []string {
	var out []string
	for i := range n {
		var p [8]byte
		if k, err := t.read(p[:], at+8*uint64(i)); err != nil || k != 8 {
			break
		}
		address := nativeUint64(p[:])
		if address == 0 {
			break
		}
		s, err := t.text(address, maxWord)
		if err != nil {
			break
		}
		out = append(out, s)
	}
	return out
}

// leader returns the process that a thread belongs to, by its first thread.
func (t task) leader() (task, error) {
	if fd, err := unix.PidfdOpen(int(t), 0); err == nil { // which it does for no other thread
		unix.Close(fd)
		return t, nil
	}
	n, err := t.status("Tgid:")
	if err != nil {
		return 0, err
	}
	group, err := strconv.Atoi(n)
	return task(group), err
}

// status returns a field of /proc/TID/status, one of the first ten.
func (t task) status(field string) (string, error) {
	fd, err := unix.Open(t.proc("status"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var text [1024]byte
	n, err := unix.Read(fd, text[:])
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text[:n])) {
		if value, ok := strings.CutPrefix(line, field); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("no %s in %s", field, t.proc("status"))
}

// traced tells whether somebody else traces a task. We do where the jail is watched,
// and for a moment when we were about to turn a call of another thread, whose number
// this one has taken by executing.
func (t task) traced() bool {
	tracer, err := t.status("TracerPid:")
	if err != nil || tracer == "0" {
		return err != nil
	}
	_, err = os.Stat("/proc/self/task/" + tracer)
	return err != nil
}

// life tells processes apart that had the same number: by the inode of a pidfd, or
// by when they were started. No two have the same inode where pidfds have a file
// system of their own (Linux 6.9); before, all have one.
func (t task) life() (uint64, error) {
	fd, err := unix.PidfdOpen(int(t), 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) != nil || fs.Type != unix.PID_FS_MAGIC {
		return t.started()
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	return st.Ino, err
}

// started is the 22nd field of /proc/PID/stat, the 20th after the name.
func (t task) started() (uint64, error) {
	text, err := os.ReadFile(t.proc("stat"))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("%s is short", t.proc("stat"))
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// descriptor is the mode and the flags of one of the task's descriptors.
func (t task) descriptor(n int) (flags int, pos int64, err error) {
	text, err := os.ReadFile(t.proc("fdinfo/" + strconv.Itoa(n)))
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscanf(string(text), "pos:\t%d\nflags:\t%o", &pos, &flags)
	return flags, pos, err
}
