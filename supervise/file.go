package supervise

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// file is a handle on a file as the jail sees it. All that is asked and done
// later is done through it: the name may lead elsewhere by then.
type file struct {
	fd    int // O_PATH
	stat  unix.Stat_t
	mount int64 // ST_*, of the mount it was found on
}

func (f *file) close() { unix.Close(f.fd) }

func (f *file) self() string { return "/proc/self/fd/" + strconv.Itoa(f.fd) }

// path is the real name in the jail.
func (f *file) path() (string, error) { return os.Readlink(f.self()) }

func (f *file) regular() bool { return f.stat.Mode&unix.S_IFMT == unix.S_IFREG }

func (f *file) noexec() bool { return f.mount&unix.ST_NOEXEC != 0 }

// reopen opens the file itself, which is regular, for reading.
func (f *file) reopen() (*os.File, error) {
	// A write lease of the jail's would keep an open waiting for it.
	fd, err := unix.Open(f.self(), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == unix.EWOULDBLOCK {
		return nil, unix.ETXTBSY
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "artifact"), nil
}

// executable tells whether the mode lets this user execute the file: the mount
// is noexec, so the kernel can't be asked. Access lists are not looked at; a
// file that has one to say otherwise is no artifact that a tool makes.
func (f *file) executable() bool {
	bit := uint32(unix.S_IXOTH)
	switch {
	case int(f.stat.Uid) == os.Geteuid():
		bit = unix.S_IXUSR
	case memberOf(int(f.stat.Gid)):
		bit = unix.S_IXGRP
	}
	return f.stat.Mode&bit != 0
}

func memberOf(gid int) bool {
	if gid == os.Getegid() {
		return true
	}
	groups, err := os.Getgroups()
	if err != nil {
		return false
	}
	for _, g := range groups {
		if g == gid {
			return true
		}
	}
	return false
}

// maxTries is for lookups with ".." while directories are being renamed.
const maxTries = 64

// open looks a path up below the jail's root, never following a magic link:
// /proc/self would be this process.
func (s *server) open(path string, flags uint64) (*file, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for range maxTries {
		fd, err := unix.Openat2(s.root, path, &how)
		if err == unix.EAGAIN || err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		return newFile(fd)
	}
	return nil, unix.EAGAIN
}

func newFile(fd int) (*file, error) {
	f := &file{fd: fd}
	var fs unix.Statfs_t
	err := unix.Fstat(fd, &f.stat)
	if err == nil {
		err = unix.Fstatfs(fd, &fs)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	f.mount = int64(fs.Flags)
	return f, nil
}

// openFD is what one of the task's descriptors is open on.
func (t task) openFD(n int) (*file, error) {
	fd, err := unix.Open(t.proc("fd/"+strconv.Itoa(n)), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return newFile(fd)
}

// lookup finds what a task means by a path, relative to a descriptor of its or
// to its working directory.
func (s *server) lookup(t task, dir int32, path string, flags uint64) (*file, error) {
	if path == "" {
		return t.openFD(int(dir))
	}
	// What follows /proc/self would be looked up in this process.
	if n, rest, ok := descriptorName(path); ok {
		if dir, path = int32(n), rest; rest == "" {
			return t.openFD(n)
		}
	}
	if !strings.HasPrefix(path, "/") {
		name := "cwd"
		if dir != unix.AT_FDCWD {
			name = "fd/" + strconv.Itoa(int(dir))
		}
		base, err := os.Readlink(t.proc(name))
		if err != nil || !strings.HasPrefix(base, "/") {
			return nil, unix.ENOENT
		}
		path = base + "/" + path
	}
	return s.open(path, flags)
}

// descriptorName recognises the names of one's own descriptors, and what is
// below one.
func descriptorName(path string) (n int, rest string, ok bool) {
	for _, dir := range []string{"/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/"} {
		if name, found := strings.CutPrefix(path, dir); found {
			number, rest, _ := strings.Cut(name, "/")
			n, err := strconv.Atoi(number)
			return n, strings.TrimLeft(rest, "/"), err == nil && n >= 0
		}
	}
	return 0, "", false
}
