package integration_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// writeAttacks leave marks outside of the project.
func writeAttacks() []attack {
	refused := []errno{unix.EACCES}
	paths := func(name string, run func(attackWorld) error) attack {
		return attack{name: "write/" + name, promise: "paths", want: refused, run: run}
	}
	return []attack{
		paths("create", func(w attackWorld) error { return create(w.out("mark")) }),
		paths("create-dotdot", func(attackWorld) error { return create("../outside/mark") }),
		paths("append", func(w attackWorld) error { return openOnly(w.out("old"), unix.O_WRONLY|unix.O_APPEND) }),
		paths("read-write", func(w attackWorld) error { return openOnly(w.out("old"), unix.O_RDWR) }),
		{name: "write/truncate", promise: "length", want: refused, run: func(w attackWorld) error { return unix.Truncate(w.out("old"), 0) }},
		{name: "write/truncate-longer", promise: "length", want: refused, run: func(w attackWorld) error { return unix.Truncate(w.out("old"), 1<<20) }},
		{name: "write/open-truncate", promise: "length", want: refused, run: func(w attackWorld) error {
			return openOnly(w.out("old"), unix.O_RDONLY|unix.O_TRUNC)
		}},
		{name: "write/truncate-readable", promise: "length", want: refused, run: func(w attackWorld) error {
			return unix.Truncate(filepath.Join(w.Home, ".gitconfig"), 0) // this one may be read
		}},
		paths("unlink", func(w attackWorld) error { return unix.Unlink(w.out("old")) }),
		paths("mkdir", func(w attackWorld) error { return unix.Mkdirat(unix.AT_FDCWD, w.out("mark"), 0o755) }),
		paths("rmdir", func(w attackWorld) error { return unix.Unlinkat(unix.AT_FDCWD, w.out("empty"), unix.AT_REMOVEDIR) }),
		paths("symlink", func(w attackWorld) error { return unix.Symlink("keep", w.out("mark")) }),
		paths("fifo", func(w attackWorld) error { return unix.Mkfifo(w.out("mark"), 0o644) }),
		paths("socket-node", func(w attackWorld) error { return unix.Mknod(w.out("mark"), unix.S_IFSOCK|0o644, 0) }),
		paths("rename-there", func(w attackWorld) error { return unix.Rename(w.out("old"), w.out("mark")) }),
		paths("unnamed-file", func(w attackWorld) error { return openOnly(w.Outside, unix.O_TMPFILE|unix.O_RDWR) }),
		paths("symlinked-directory", func(w attackWorld) error {
			return writeThrough(w, w.Outside, "mark")
		}),
		paths("dangling-link", func(w attackWorld) error { return writeDangling(w) }),
		paths("proc-root", func(w attackWorld) error { return create("/proc/self/root" + w.out("mark")) }),
		paths("handle-reopened", writeThroughHandle),
		paths("directory-handle", writeBelowHandle),
		paths("bashrc", func(w attackWorld) error { return create(filepath.Join(w.Home, ".bashrc")) }),
		paths("ssh-config", func(w attackWorld) error { return create(filepath.Join(w.Home, ".ssh/config")) }),
		paths("autostart", func(w attackWorld) error { return createDeep(filepath.Join(w.Home, ".config/autostart/x.desktop")) }),
		paths("trust", func(w attackWorld) error { return createDeep(filepath.Join(w.Home, ".config/jail/trust.toml")) }),
		paths("own-rules", func(w attackWorld) error { return createDeep(filepath.Join(w.Home, ".config/jail/jail.toml")) }),
		paths("gitconfig", func(w attackWorld) error { return openOnly(filepath.Join(w.Home, ".gitconfig"), unix.O_WRONLY) }),
		paths("gitconfig-replaced", func(w attackWorld) error {
			return unix.Rename(w.in("README.md"), filepath.Join(w.Home, ".gitconfig"))
		}),
		paths("shared-temp", func(w attackWorld) error { return create(filepath.Join(w.Temp, "mark")) }),
		paths("tmp", func(attackWorld) error { return createAndRemove("/tmp") }),
		paths("var-tmp", func(attackWorld) error { return createAndRemove("/var/tmp") }),
		{name: "write/dev-shm", promise: "paths", want: refused, absent: []errno{unix.ENOENT}, run: func(attackWorld) error {
			return createAndRemove("/dev/shm")
		}},
		{name: "write/oom-score", promise: "paths", want: refused, run: func(w attackWorld) error {
			return openOnly(fmt.Sprintf("/proc/%d/oom_score_adj", w.Victim), unix.O_WRONLY)
		}},
		{name: "write/core-pattern", promise: "paths", want: refused, absent: []errno{unix.EROFS}, superuser: true, run: func(attackWorld) error {
			return openOnly("/proc/sys/kernel/core_pattern", unix.O_WRONLY)
		}},
	}
}

// linkAttacks take files across the border of the project, outwards.
func linkAttacks() []attack {
	moved := []errno{unix.EXDEV, unix.EACCES}
	paths := func(name string, run func(attackWorld) error) attack {
		return attack{name: "move/" + name, promise: "paths", want: moved, run: run}
	}
	return []attack{
		paths("rename-out", func(w attackWorld) error { return unix.Rename(w.in("README.md"), w.out("mark")) }),
		paths("rename-over", func(w attackWorld) error { return unix.Rename(w.in("README.md"), w.out("old")) }),
		paths("rename-in", func(w attackWorld) error { return unix.Rename(w.out("old"), w.in("x")) }),
		paths("link-out", func(w attackWorld) error { return unix.Link(w.in("README.md"), w.out("mark")) }),
		paths("exchange", func(w attackWorld) error {
			return unix.Renameat2(unix.AT_FDCWD, w.in("README.md"), unix.AT_FDCWD, w.out("old"), unix.RENAME_EXCHANGE)
		}),
		paths("directory-out", func(w attackWorld) error {
			return after(unix.Mkdirat(unix.AT_FDCWD, w.in("d"), 0o755), func() error { return unix.Rename(w.in("d"), w.out("mark")) })
		}),
		paths("project-away", func(w attackWorld) error { return unix.Rename(w.Project, w.out("mark")) }),
		paths("unnamed-file-out", linkUnnamed),
	}
}

// linkUnnamed gives a file without a name one, outside.
func linkUnnamed(w attackWorld) error {
	fd, err := unix.Open(w.Project, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("no unnamed file: %v", err)
	}
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, w.out("mark"), unix.AT_SYMLINK_FOLLOW)
}

func writeThrough(w attackWorld, target, rest string) error {
	if err := unix.Symlink(target, w.in("link")); err != nil {
		return fmt.Errorf("the link could not be made: %v", err)
	}
	return create(filepath.Join(w.in("link"), rest))
}

// writeDangling creates a file through a link that leads to where there is
// none yet.
func writeDangling(w attackWorld) error {
	if err := unix.Symlink(w.out("mark"), w.in("link")); err != nil {
		return fmt.Errorf("the link could not be made: %v", err)
	}
	return openOnly(w.in("link"), unix.O_CREAT|unix.O_WRONLY)
}

func writeThroughHandle(w attackWorld) error {
	fd, err := unix.Open(w.out("old"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("no handle: %v", err)
	}
	return openOnly(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY)
}

func writeBelowHandle(w attackWorld) error {
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

// createAndRemove makes a file where all users can, and leaves nothing.
func createAndRemove(dir string) error {
	path := filepath.Join(dir, fmt.Sprintf("escape-test-%d", os.Getpid()))
	return errors.Join(create(path), ignoreAbsence(unix.Unlink(path)))
}

func ignoreAbsence(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
