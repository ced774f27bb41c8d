package integration_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// executeAttacks run what was written, or write what may run.
func executeAttacks() []attack {
	refused := []errno{unix.EACCES}
	moved := []errno{unix.EXDEV, unix.EACCES}
	execs := func(name string, want []errno, run func(attackWorld) error) attack {
		return attack{name: "execute/" + name, promise: "paths", want: want, run: run}
	}
	memory := func(name string, absent []errno, run func(attackWorld) error) attack {
		return attack{name: "execute/" + name, promise: "memory", want: []errno{unix.ENOSYS}, absent: absent, run: run}
	}
	return []attack{
		execs("copy", refused, func(w attackWorld) error { return executeCopy(w, w.in("x")) }),
		execs("copy-in-temp", refused, func(w attackWorld) error { return executeCopy(w, filepath.Join(os.TempDir(), "x")) }),
		execs("copy-renamed", refused, func(w attackWorld) error {
			return after(errors.Join(copyFile(program("true"), w.in("x")), unix.Rename(w.in("x"), w.in("true"))), func() error { return execute(w.in("true")) })
		}),
		execs("symlink-to-copy", refused, func(w attackWorld) error {
			return after(errors.Join(copyFile(program("true"), w.in("x")), unix.Symlink("x", w.in("true"))), func() error { return execute(w.in("true")) })
		}),
		execs("link-to-copy", refused, func(w attackWorld) error {
			return after(errors.Join(copyFile(program("true"), w.in("x")), unix.Link(w.in("x"), w.in("true"))), func() error { return execute(w.in("true")) })
		}),
		execs("script", refused, func(w attackWorld) error {
			return after(os.WriteFile(w.in("x"), []byte("#!/bin/sh\nexit 0\n"), 0o755), func() error { return execute(w.in("x")) })
		}),
		execs("written-interpreter", refused, executeInterpreted),
		execs("own-descriptor", refused, func(w attackWorld) error { return executeDescriptor(w, unix.O_RDONLY) }),
		execs("own-handle", refused, func(w attackWorld) error { return executeDescriptor(w, unix.O_PATH) }),
		execs("execveat", refused, func(w attackWorld) error { return becomeEcho(w, unix.O_RDONLY) }),
		execs("execveat-handle", refused, func(w attackWorld) error { return becomeEcho(w, unix.O_PATH) }),
		execs("unnamed-file", refused, executeUnnamed),
		execs("outside", refused, func(w attackWorld) error { return execute(w.Program) }),
		execs("create-in-exec-tree", refused, func(w attackWorld) error { return createHere(w.Tools) }),
		execs("open-program", refused, func(w attackWorld) error {
			return openOnly(filepath.Join(w.Tools, "spare"), unix.O_WRONLY|unix.O_APPEND)
		}),
		execs("map-program", refused, mapProgram),
		execs("link-into-exec-tree", moved, func(w attackWorld) error { return linkHere(w.in("README.md"), w.Tools) }),
		execs("rename-into-exec-tree", moved, func(w attackWorld) error { return renameHere(w.in("README.md"), w.Tools) }),
		execs("link-program-to-project", moved, func(w attackWorld) error { return unix.Link(filepath.Join(w.Tools, "spare"), w.in("x")) }),
		execs("rename-program-to-project", moved, renameProgram),
		memory("memfd", nil, executeMemory),
		memory("memfd-noexec", nil, func(attackWorld) error {
			_, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
			return err
		}),
		memory("memfd-secret", []errno{unix.ENOSYS}, func(attackWorld) error {
			_, err := unix.MemfdSecret(unix.O_CLOEXEC)
			return err
		}),
	}
}

// execute starts a program and wants it to end well.
func execute(path string, args ...string) error { return exec.Command(path, args...).Run() }

func executeCopy(_ attackWorld, to string) error {
	if err := copyFile(program("true"), to); err != nil {
		return fmt.Errorf("the copy could not be made: %v", err)
	}
	defer os.Remove(to)
	return execute(to)
}

// executeInterpreted asks for a script that would be run by a written program.
func executeInterpreted(w attackWorld) error {
	err := errors.Join(
		copyFile(program("true"), w.in("interpreter")),
		os.WriteFile(w.in("x"), []byte("#!"+w.in("interpreter")+"\n"), 0o755),
	)
	return after(err, func() error { return execute(w.in("x")) })
}

// executeDescriptor names a copy by the descriptor that it is open as.
func executeDescriptor(w attackWorld, flags int) error {
	if err := copyFile(program("true"), w.in("x")); err != nil {
		return fmt.Errorf("the copy could not be made: %v", err)
	}
	fd, err := unix.Open(w.in("x"), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the copy could not be opened: %v", err)
	}
	return execute(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// becomeEcho becomes a copy of echo(1), which then reports the success.
func becomeEcho(w attackWorld, flags int) error {
	if err := copyFile(program("echo"), w.in("x")); err != nil {
		return fmt.Errorf("the copy could not be made: %v", err)
	}
	fd, err := unix.Open(w.in("x"), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the copy could not be opened: %v", err)
	}
	return becomeFD(fd)
}

func becomeFD(fd int) error {
	empty := new(byte)
	argv, err := syscall.SlicePtrFromStrings([]string{"echo", okLine + "\n" + endLine})
	if err != nil {
		return err
	}
	envv := make([]*byte, 1)
	return call(
		unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(empty)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])), unix.AT_EMPTY_PATH,
	)
}

func executeUnnamed(w attackWorld) error {
	b, err := os.ReadFile(program("true"))
	if err != nil {
		return err
	}
	fd, err := unix.Open(w.Project, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o755)
	if err != nil {
		return fmt.Errorf("no unnamed file: %v", err)
	}
	if _, err := unix.Write(fd, b); err != nil {
		return err
	}
	readable, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the unnamed file could not be opened again: %v", err)
	}
	unix.Close(fd) // or it would be ETXTBSY
	return execute(fmt.Sprintf("/proc/self/fd/%d", readable))
}

func executeMemory(attackWorld) error {
	b, err := os.ReadFile(program("echo"))
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, b); err != nil {
		return err
	}
	return becomeFD(fd)
}

func mapProgram(w attackWorld) error {
	fd, err := unix.Open(filepath.Join(w.Tools, "spare"), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

// here is a name of this attacker's own: the exec tree is shared by all.
func here(dir string) string { return filepath.Join(dir, fmt.Sprintf("new-%d", os.Getpid())) }

func createHere(dir string) error { return create(here(dir)) }

func linkHere(from, dir string) error { return unix.Link(from, here(dir)) }

func renameHere(from, dir string) error { return unix.Rename(from, here(dir)) }

// renameProgram takes a program out of the exec tree; without jail it is a
// program that was put there before.
func renameProgram(w attackWorld) error {
	spare := here(w.Tools)
	if err := copyFile(program("true"), spare); err != nil {
		spare = filepath.Join(w.Tools, "spare")
	}
	return unix.Rename(spare, w.in("x"))
}

// setIDAttacks make files that would run as this user for others. Calls that
// not every architecture has are in machineAttacks.
func setIDAttacks() []attack {
	sets := func(name string, run func(attackWorld) error) attack {
		return attack{name: "set-id/" + name, promise: "kernel", want: []errno{unix.EPERM}, run: run}
	}
	return []attack{
		sets("fchmodat", func(w attackWorld) error {
			return unix.Fchmodat(unix.AT_FDCWD, w.in("README.md"), unix.S_ISUID|0o755, 0)
		}),
		sets("fchmodat-group", func(w attackWorld) error {
			return unix.Fchmodat(unix.AT_FDCWD, w.in("README.md"), unix.S_ISGID|0o755, 0)
		}),
		{name: "set-id/fchmodat2", promise: "kernel", want: []errno{unix.EPERM}, absent: []errno{unix.ENOSYS}, run: chmodNew},
		sets("fchmod", chmodOpened),
		sets("openat", func(w attackWorld) error {
			_, err := unix.Openat(unix.AT_FDCWD, w.in("x"), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, unix.S_ISUID|0o755)
			return err
		}),
		sets("openat-unnamed", func(w attackWorld) error {
			_, err := unix.Openat(unix.AT_FDCWD, w.Project, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, unix.S_ISUID|0o755)
			return err
		}),
		sets("mknodat", func(w attackWorld) error {
			return unix.Mknodat(unix.AT_FDCWD, w.in("x"), unix.S_IFREG|unix.S_ISUID|0o755, 0)
		}),
		sets("device", func(w attackWorld) error { return unix.Mknodat(unix.AT_FDCWD, w.in("x"), unix.S_IFCHR|0o600, 0) }),
	}
}

func chmodNew(w attackWorld) error {
	path, err := unix.BytePtrFromString(w.in("README.md"))
	if err != nil {
		return err
	}
	at := unix.AT_FDCWD
	return call(unix.SYS_FCHMODAT2, uintptr(at), uintptr(unsafe.Pointer(path)), unix.S_ISUID|0o755, 0)
}

func chmodOpened(w attackWorld) error {
	fd, err := unix.Open(w.in("README.md"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Fchmod(fd, unix.S_ISUID|0o755)
}
