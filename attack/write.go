package attack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// writeAttacks leave marks outside of the project.
func writeAttacks() []Attack {
	refused := []Errno{unix.EACCES}
	// With mounts the write meets a read-only mount first, or nothing at all.
	mounts := []Errno{unix.EROFS, unix.ENOENT}
	paths := func(name string, run func(World) error) Attack {
		return Attack{Name: "write/" + name, Promise: "paths", Want: refused, Mounts: mounts, run: run}
	}
	return []Attack{
		paths("create", func(w World) error { return create(w.out("mark")) }),
		paths("create-dotdot", func(World) error { return create("../outside/mark") }),
		paths("append", func(w World) error { return openOnly(w.out("old"), unix.O_WRONLY|unix.O_APPEND) }),
		paths("read-write", func(w World) error { return openOnly(w.out("old"), unix.O_RDWR) }),
		{Name: "write/truncate", Promise: "length", Want: refused, Mounts: mounts, run: func(w World) error { return unix.Truncate(w.out("old"), 0) }},
		{Name: "write/truncate-longer", Promise: "length", Want: refused, Mounts: mounts, run: func(w World) error { return unix.Truncate(w.out("old"), 1<<20) }},
		{Name: "write/open-truncate", Promise: "length", Want: refused, Mounts: mounts, run: func(w World) error {
			return openOnly(w.out("old"), unix.O_RDONLY|unix.O_TRUNC)
		}},
		{Name: "write/truncate-readable", Promise: "length", Want: refused, Mounts: mounts, run: func(w World) error {
			return unix.Truncate(w.readable("note"), 0)
		}},
		paths("unlink", func(w World) error { return unix.Unlink(w.out("old")) }),
		paths("mkdir", func(w World) error { return unix.Mkdirat(unix.AT_FDCWD, w.out("mark"), 0o755) }),
		paths("rmdir", func(w World) error { return unix.Unlinkat(unix.AT_FDCWD, w.out("empty"), unix.AT_REMOVEDIR) }),
		paths("symlink", func(w World) error { return unix.Symlink("keep", w.out("mark")) }),
		paths("fifo", func(w World) error { return unix.Mkfifo(w.out("mark"), 0o644) }),
		paths("socket-node", func(w World) error { return unix.Mknod(w.out("mark"), unix.S_IFSOCK|0o644, 0) }),
		paths("rename-there", func(w World) error { return unix.Rename(w.out("old"), w.out("mark")) }),
		paths("unnamed-file", func(w World) error { return openOnly(w.Outside, unix.O_TMPFILE|unix.O_RDWR) }),
		paths("symlinked-directory", func(w World) error {
			return writeThrough(w, w.Outside, "mark")
		}),
		paths("dangling-link", func(w World) error { return writeDangling(w) }),
		paths("proc-root", func(w World) error { return create("/proc/self/root" + w.out("mark")) }),
		paths("handle-reopened", writeThroughHandle),
		paths("directory-handle", writeBelowHandle),
		paths("bashrc", func(w World) error { return create(filepath.Join(w.Home, ".bashrc")) }),
		paths("ssh-config", func(w World) error { return create(filepath.Join(w.Home, ".ssh/config")) }),
		paths("autostart", func(w World) error { return createDeep(filepath.Join(w.Home, ".config/autostart/x.desktop")) }),
		paths("trust", func(w World) error { return createDeep(filepath.Join(w.Home, ".config/jail/trust.toml")) }),
		paths("own-rules", func(w World) error { return createDeep(filepath.Join(w.Home, ".config/jail/jail.toml")) }),
		paths("gitconfig", func(w World) error { return openOnly(filepath.Join(w.Home, ".gitconfig"), unix.O_WRONLY) }),
		paths("shared-temp", func(w World) error { return create(filepath.Join(w.Temp, "mark")) }),
		paths("tmp", func(w World) error { return createAndRemove(w, "/tmp") }),
		paths("var-tmp", func(w World) error { return createAndRemove(w, "/var/tmp") }),
		{Name: "write/dev-shm", Promise: "paths", Want: refused, Mounts: mounts, Absent: []Errno{unix.ENOENT}, run: func(w World) error {
			return createAndRemove(w, "/dev/shm")
		}},
		{Name: "write/oom-score", Promise: "paths", Want: refused, Mounts: mounts, run: func(w World) error {
			return openOnly(fmt.Sprintf("/proc/%d/oom_score_adj", w.Victim), unix.O_WRONLY)
		}},
		{Name: "write/core-pattern", Promise: "paths", Want: refused, Mounts: mounts, Absent: []Errno{unix.EROFS}, Superuser: true, run: func(World) error {
			return openOnly("/proc/sys/kernel/core_pattern", unix.O_WRONLY)
		}},
	}
}

// linkAttacks take files across the border of the project, outwards.
func linkAttacks() []Attack {
	moved := []Errno{unix.EXDEV, unix.EACCES}
	paths := func(name string, run func(World) error) Attack {
		return Attack{Name: "move/" + name, Promise: "paths", Want: moved, Mounts: []Errno{unix.EROFS, unix.ENOENT, unix.EBUSY}, run: run}
	}
	return []Attack{
		paths("over-gitconfig", func(w World) error { return unix.Rename(w.in("README.md"), filepath.Join(w.Home, ".gitconfig")) }),
		paths("rename-out", func(w World) error { return unix.Rename(w.in("README.md"), w.out("mark")) }),
		paths("rename-over", func(w World) error { return unix.Rename(w.in("README.md"), w.out("old")) }),
		paths("rename-in", func(w World) error { return unix.Rename(w.out("old"), w.in("x")) }),
		paths("link-out", func(w World) error { return unix.Link(w.in("README.md"), w.out("mark")) }),
		paths("exchange", func(w World) error {
			return unix.Renameat2(unix.AT_FDCWD, w.in("README.md"), unix.AT_FDCWD, w.out("old"), unix.RENAME_EXCHANGE)
		}),
		paths("directory-out", func(w World) error {
			return after(unix.Mkdirat(unix.AT_FDCWD, w.in("d"), 0o755), func() error { return unix.Rename(w.in("d"), w.out("mark")) })
		}),
		paths("project-away", func(w World) error { return unix.Rename(w.Project, w.out("mark")) }),
		paths("unnamed-file-out", linkUnnamed),
	}
}

// linkUnnamed gives a file without a name one, outside.
func linkUnnamed(w World) error {
	fd, err := unix.Open(w.Project, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("no unnamed file: %v", err)
	}
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, w.out("mark"), unix.AT_SYMLINK_FOLLOW)
}

func writeThrough(w World, target, rest string) error {
	if err := unix.Symlink(target, w.in("link")); err != nil {
		return fmt.Errorf("the link could not be made: %v", err)
	}
	return create(filepath.Join(w.in("link"), rest))
}

// writeDangling creates a file through a link that leads to where there is
// none yet.
func writeDangling(w World) error {
	if err := unix.Symlink(w.out("mark"), w.in("link")); err != nil {
		return fmt.Errorf("the link could not be made: %v", err)
	}
	return openOnly(w.in("link"), unix.O_CREAT|unix.O_WRONLY)
}

func writeThroughHandle(w World) error {
	fd, err := unix.Open(w.out("old"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("no handle: %v", err)
	}
	return openOnly(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY)
}

func writeBelowHandle(w World) error {
	fd, err := unix.Open(w.Outside, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("no handle: %v", err)
	}
	return unix.Mkdirat(fd, "mark", 0o755)
}

// createDeep makes a file with all that is missing above it.
func createDeep(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return create(path)
}

// createAndRemove makes a file where all users can, and leaves nothing. In a
// directory of the jail's own that has the same name it is not there.
func createAndRemove(w World, dir string) error {
	path := filepath.Join(dir, fmt.Sprintf("jail-attack-%d", os.Getpid()))
	err := errors.Join(create(path), ignoreAbsence(unix.Unlink(path)))
	if err == nil && identity(dir) != w.Shared[dir] {
		return unix.ENOENT
	}
	return err
}

// identity tells one directory from another of the same name.
func identity(path string) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

func ignoreAbsence(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
