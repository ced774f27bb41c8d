package attack

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// readAttacks are after the secret, or the names of other files.
func readAttacks() []Attack {
	refused := []Errno{unix.EACCES}
	moved := []Errno{unix.EXDEV, unix.EACCES} // a link would gain rights, a rename too
	paths := func(name string, want []Errno, run func(World) error) Attack {
		return Attack{Name: "read/" + name, Promise: "paths", Want: want, Mounts: []Errno{unix.EROFS, unix.ENOENT}, run: run}
	}
	return []Attack{
		paths("open", refused, func(w World) error { return loot(w.Secret) }),
		paths("openat", refused, readBelowHandle),
		paths("read-write", refused, func(w World) error { return lootFlags(w.Secret, unix.O_RDWR) }),
		paths("dotdot", refused, func(w World) error { return loot("../.ssh/id_test") }),
		paths("chdir", refused, readFromThere),
		paths("symlink", refused, func(w World) error { return readThrough(w, w.Secret, "") }),
		paths("symlinked-directory", refused, func(w World) error { return readThrough(w, w.Home, ".ssh/id_test") }),
		paths("symlink-chain", refused, readThroughChain),
		paths("proc-self-root", refused, func(w World) error { return loot("/proc/self/root" + w.Secret) }),
		paths("proc-thread-root", refused, func(w World) error { return loot("/proc/thread-self/root" + w.Secret) }),
		paths("handle-reopened", refused, readThroughHandle),
		paths("link", moved, func(w World) error {
			return after(unix.Link(w.Secret, w.in("x")), func() error { return loot(w.in("x")) })
		}),
		paths("link-of-handle", moved, readLinkedHandle),
		paths("rename", moved, func(w World) error {
			return after(unix.Rename(w.Secret, w.in("x")), func() error { return loot(w.in("x")) })
		}),
		paths("exchange", moved, readExchanged),
		paths("rename-directory", moved, func(w World) error {
			return after(unix.Rename(filepath.Dir(w.Secret), w.in("x")), func() error { return loot(w.in("x/id_test")) })
		}),
		paths("list-home", refused, func(w World) error { return list(w.Home) }),
		paths("list-hidden", refused, func(w World) error { return list(filepath.Dir(w.Secret)) }),
		paths("list-shared-temp", refused, func(w World) error { return list(w.Temp) }),
		paths("list-dotdot", refused, func(World) error { return list("..") }),
		{Name: "read/proc-kcore", Promise: "paths", Want: []Errno{unix.EPERM}, Absent: []Errno{unix.ENOENT}, Superuser: true, run: func(World) error {
			return openOnly("/proc/kcore", unix.O_RDONLY)
		}},
	}
}

// loot opens a file and prints it: the test looks for the secret.
func loot(path string) error { return lootFlags(path, unix.O_RDONLY) }

func lootFlags(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return lootFD(fd)
}

func lootFD(fd int) error {
	f := os.NewFile(uintptr(fd), "loot")
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	return lootBytes(b)
}

func lootBytes(b []byte) error {
	if !bytes.Contains(b, []byte("secret-")) {
		return fmt.Errorf("this is not the secret: %q", b)
	}
	fmt.Printf("%s\n", b)
	return nil
}

func openOnly(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func list(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Getdents(fd, make([]byte, 4096))
	return err
}

func readBelowHandle(w World) error {
	dir, err := unix.Open(filepath.Dir(w.Secret), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	fd, err := unix.Openat(dir, filepath.Base(w.Secret), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return lootFD(fd)
}

// readFromThere changes into the directory, which no layer forbids.
func readFromThere(w World) error {
	if err := unix.Chdir(filepath.Dir(w.Secret)); err != nil {
		return err
	}
	return loot("/proc/self/cwd/" + filepath.Base(w.Secret))
}

func readThrough(w World, target, rest string) error {
	if err := unix.Symlink(target, w.in("link")); err != nil {
		return fmt.Errorf("the link could not be made: %v", err)
	}
	return loot(filepath.Join(w.in("link"), rest))
}

func readThroughChain(w World) error {
	if err := unix.Symlink("link", w.in("first")); err != nil {
		return fmt.Errorf("the link could not be made: %v", err)
	}
	if err := unix.Symlink("../.ssh", w.in("link")); err != nil {
		return fmt.Errorf("the link could not be made: %v", err)
	}
	return loot(w.in("first/id_test"))
}

func readThroughHandle(w World) error {
	fd, err := unix.Open(w.Secret, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("no handle: %v", err)
	}
	return loot(fmt.Sprintf("/proc/self/fd/%d", fd))
}

func readLinkedHandle(w World) error {
	fd, err := unix.Open(w.Secret, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("no handle: %v", err)
	}
	err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, w.in("x"), unix.AT_SYMLINK_FOLLOW)
	return after(err, func() error { return loot(w.in("x")) })
}

func readExchanged(w World) error {
	if err := create(w.in("x")); err != nil {
		return fmt.Errorf("no file of its own: %v", err)
	}
	err := unix.Renameat2(unix.AT_FDCWD, w.Secret, unix.AT_FDCWD, w.in("x"), unix.RENAME_EXCHANGE)
	return after(err, func() error { return loot(w.in("x")) })
}
