package trace

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func proc(task int, name string) string { return fmt.Sprintf("/proc/%d/%s", task, name) }

// ReadMemory fills b from a task's memory, as far as it goes (process_vm_readv(2)).
func ReadMemory(task int, b []byte, at uint64) (int, error) {
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	return unix.ProcessVMReadv(task, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}, 0)
}

// Text reads a string that ends in NUL, up to limit bytes. A read does not cross
// into a page that may not be there. ENAMETOOLONG: there was no NUL.
func Text(task int, at uint64, limit int) (string, error) {
	var out []byte
	for len(out) < limit {
		page := make([]byte, min(256, 4096-at%4096))
		n, err := ReadMemory(task, page, at)
		if err != nil {
			return "", err
		}
		if i := bytes.IndexByte(page[:n], 0); i >= 0 {
			return string(append(out, page[:i]...)), nil
		}
		out, at = append(out, page[:n]...), at+uint64(n)
	}
	return "", unix.ENAMETOOLONG
}

// text reads a path.
func text(task int, at uint64) (string, bool) {
	s, err := Text(task, at, unix.PathMax)
	return s, err == nil && at != 0
}

// resolve is the real path, in the task's view, of what it calls name; of what
// is not there the directory is resolved. follow is false for calls on a link
// itself.
func resolve(task int, dir int32, name string, follow bool) (string, bool) {
	if name == "" {
		return descriptor(task, dir)
	}
	if !path.IsAbs(name) {
		base, ok := descriptor(task, dir)
		if !ok {
			return "", false
		}
		name = base + "/" + name
	}
	if own(path.Clean(name)) {
		return path.Clean(name), true
	}
	root, err := unix.Open(proc(task, "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return path.Clean(name), true
	}
	defer unix.Close(root)
	if real, ok := lookup(root, name, follow); ok {
		return real, true
	}
	// Not path.Dir, which takes ".." after a link for the link's own parent.
	trimmed := strings.TrimRight(name, "/")
	i := strings.LastIndexByte(trimmed, '/')
	if real, ok := lookup(root, trimmed[:i+1], true); i >= 0 && ok {
		return path.Join(real, trimmed[i+1:]), true
	}
	return path.Clean(name), true
}

// own tells of paths that mean something else to each process.
func own(name string) bool {
	return strings.HasPrefix(name, "/proc/") || strings.HasPrefix(name, "/dev/fd/") ||
		name == "/dev/stdin" || name == "/dev/stdout" || name == "/dev/stderr"
}

func lookup(root int, name string, follow bool) (string, bool) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	if !follow {
		how.Flags |= unix.O_NOFOLLOW
	}
	fd, err := unix.Openat2(root, name, &how)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	return real, err == nil
}

// descriptor is the path of what a task has open, or of its working directory.
func descriptor(task int, n int32) (string, bool) {
	name := "cwd"
	if n != unix.AT_FDCWD {
		name = "fd/" + strconv.Itoa(int(n))
	}
	target, err := os.Readlink(proc(task, name))
	return target, err == nil && path.IsAbs(target)
}

// interpreters are known by the script that they run.
var interpreters = map[string]bool{"node": true, "python": true, "bash": true, "sh": true, "dash": true, "perl": true, "ruby": true, "env": true}

// Program names what a task runs, for people.
func Program(task int) string {
	exe, err := os.Readlink(proc(task, "exe"))
	if err != nil {
		return "?"
	}
	name := path.Base(strings.TrimSuffix(exe, " (deleted)"))
	if !interpreters[strings.TrimRight(name, "0123456789.")] {
		return name
	}
	line, _ := os.ReadFile(proc(task, "cmdline")) // none: the interpreter's name will do
	args := strings.Split(string(line), "\x00")
	switch {
	case len(args) < 3 || strings.HasPrefix(args[1], "-"):
		return name
	case args[1] == "": // it has named itself (process.title), over what was there
		return path.Base(args[0])
	}
	return path.Base(args[1])
}
