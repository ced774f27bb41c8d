package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// executeAttacks run what was written, or write what may run. Where the jail
// seals, a copy out of its reach runs instead: the written file itself never
// does.
func executeAttacks() []Attack {
	refused := []Errno{unix.EACCES}
	moved := []Errno{unix.EXDEV, unix.EACCES}
	execs := func(name string, run func(World) error) Attack {
		return Attack{Name: "execute/" + name, Promise: "paths", Want: refused, Mounts: []Errno{Sealed}, run: run}
	}
	tree := func(name string, want []Errno, run func(World) error) Attack {
		return Attack{Name: "execute/" + name, Promise: "paths", Want: want, Mounts: []Errno{unix.EROFS, unix.ETXTBSY}, run: run}
	}
	memory := func(name string, absent []Errno, run func(World) error) Attack {
		return Attack{Name: "execute/" + name, Promise: "memory", Want: []Errno{unix.ENOSYS}, Absent: absent, run: run}
	}
	return []Attack{
		execs("copy", func(w World) error { return executeCopy(w, w.in("x")) }),
		execs("copy-in-temp", func(w World) error { return executeCopy(w, filepath.Join(os.TempDir(), "x")) }),
		execs("copy-renamed", func(w World) error {
			return executeOther(w, w.in("y"), func() error { return unix.Rename(w.in("x"), w.in("y")) })
		}),
		execs("symlink-to-copy", func(w World) error {
			return executeOther(w, w.in("y"), func() error { return unix.Symlink("x", w.in("y")) })
		}),
		execs("link-to-copy", func(w World) error {
			return executeOther(w, w.in("y"), func() error { return unix.Link(w.in("x"), w.in("y")) })
		}),
		execs("written-interpreter", executeInterpreted),
		execs("own-descriptor", func(w World) error { return executeDescriptor(w, unix.O_RDONLY) }),
		execs("own-handle", func(w World) error { return executeDescriptor(w, unix.O_PATH) }),
		execs("execveat", func(w World) error { return becomeCopy(w, unix.O_RDONLY) }),
		execs("execveat-handle", func(w World) error { return becomeCopy(w, unix.O_PATH) }),
		execs("unnamed-file", executeUnnamed),
		{Name: "execute/outside", Promise: "paths", Want: refused, Mounts: []Errno{unix.ENOENT}, run: func(w World) error { return execute(w.Program) }},
		tree("create-in-exec-tree", refused, func(w World) error { return createHere(w.Tools) }),
		tree("open-program", refused, func(w World) error {
			return openOnly(w.tool("idle"), unix.O_WRONLY|unix.O_APPEND)
		}),
		tree("map-program", refused, mapProgram),
		tree("link-into-exec-tree", moved, func(w World) error { return linkHere(w.in("README.md"), w.Tools) }),
		tree("rename-into-exec-tree", moved, func(w World) error { return renameHere(w.in("README.md"), w.Tools) }),
		tree("link-program-to-project", moved, func(w World) error { return unix.Link(w.tool("idle"), w.in("x")) }),
		tree("rename-program-to-project", moved, renameProgram),
		memory("memfd", nil, executeMemory),
		memory("memfd-noexec", nil, func(World) error {
			_, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
			return err
		}),
		memory("memfd-secret", []Errno{unix.ENOSYS}, func(World) error {
			_, err := unix.MemfdSecret(unix.O_CLOEXEC)
			return err
		}),
	}
}

// executeCopy runs a copy of this program, which says whether it is the very
// file that was written.
func executeCopy(w World, to string) error {
	if err := copyFile(w.Attacker(), to); err != nil {
		return err
	}
	defer os.Remove(to)
	return execute(to, asIsRole, to)
}

// executeOther runs a copy under a second name.
func executeOther(w World, other string, give func() error) error {
	if err := copyFile(w.Attacker(), w.in("x")); err != nil {
		return err
	}
	if err := give(); err != nil {
		return fmt.Errorf("no other name: %v", err)
	}
	return execute(other, asIsRole, other)
}

// executeInterpreted runs a script of a written interpreter, which its name makes
// an attacker. The kernel puts the script's path behind the part.
func executeInterpreted(w World) error {
	interpreter := w.in(Word)
	if err := copyFile(w.Attacker(), interpreter); err != nil {
		return err
	}
	if err := os.WriteFile(w.in("x"), []byte("#!"+interpreter+" "+interpretRole+"\n"), 0o755); err != nil {
		return fmt.Errorf("no script: %v", err)
	}
	return execute(w.in("x"))
}

// openCopy is a descriptor of a copy of this program.
func openCopy(w World, flags int) (int, error) {
	if err := copyFile(w.Attacker(), w.in("x")); err != nil {
		return -1, err
	}
	fd, err := unix.Open(w.in("x"), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("the copy could not be opened: %v", err)
	}
	return fd, nil
}

// executeDescriptor names a copy by the descriptor that it is open as.
func executeDescriptor(w World, flags int) error {
	fd, err := openCopy(w, flags)
	if err != nil {
		return err
	}
	return execute(fmt.Sprintf("/proc/self/fd/%d", fd), asIsRole, w.in("x"))
}

// becomeCopy becomes a copy of this program, which then reports.
func becomeCopy(w World, flags int) error {
	fd, err := openCopy(w, flags)
	if err != nil {
		return err
	}
	return becomeFD(fd, becomeRole, w.in("x"))
}

// becomeHandle becomes a program that does nothing.
func becomeHandle(path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	return after(err, func() error { return becomeFD(fd) })
}

func becomeFD(fd int, words ...string) error {
	empty := new(byte)
	argv, err := syscall.SlicePtrFromStrings(append([]string{Word}, words...))
	if err != nil {
		return err
	}
	envv := make([]*byte, 1)
	return call(
		unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(empty)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])), unix.AT_EMPTY_PATH,
	)
}

func executeUnnamed(w World) error {
	b, err := os.ReadFile(w.Attacker())
	if err != nil {
		return fmt.Errorf("no copy: %v", err)
	}
	fd, err := unix.Open(w.Project, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o755)
	if err != nil {
		return fmt.Errorf("no unnamed file: %v", err)
	}
	if _, err := unix.Write(fd, b); err != nil {
		return fmt.Errorf("no copy: %v", err)
	}
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
	readable, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the unnamed file could not be opened again: %v", err)
	}
	unix.Close(fd) // or it would be ETXTBSY
	path = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), readable)
	return execute(path, asIsRole, path)
}

func executeMemory(w World) error {
	b, err := os.ReadFile(w.Attacker())
	if err != nil {
		return fmt.Errorf("no copy: %v", err)
	}
	fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, b); err != nil {
		return err
	}
	return becomeFD(fd, echoRole, okLine, endLine)
}

func mapProgram(w World) error {
	fd, err := unix.Open(w.tool("idle"), unix.O_RDWR|unix.O_CLOEXEC, 0)
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
func renameProgram(w World) error {
	spare := here(w.Tools)
	if err := copyFile(w.Attacker(), spare); err != nil {
		spare = w.tool("idle")
	}
	return unix.Rename(spare, w.in("x"))
}

// setIDAttacks make files that would run as this user for others. Calls that
// not every architecture has are in machineAttacks.
func setIDAttacks() []Attack {
	sets := func(name string, run func(World) error) Attack {
		return Attack{Name: "set-id/" + name, Promise: "kernel", Want: []Errno{unix.EPERM}, run: run}
	}
	return []Attack{
		sets("fchmodat", func(w World) error {
			return unix.Fchmodat(unix.AT_FDCWD, w.in("README.md"), unix.S_ISUID|0o755, 0)
		}),
		sets("fchmodat-group", func(w World) error {
			return unix.Fchmodat(unix.AT_FDCWD, w.in("README.md"), unix.S_ISGID|0o755, 0)
		}),
		{Name: "set-id/fchmodat2", Promise: "kernel", Want: []Errno{unix.EPERM}, Absent: []Errno{unix.ENOSYS}, run: chmodNew},
		sets("fchmod", chmodOpened),
		sets("openat", func(w World) error {
			_, err := unix.Openat(unix.AT_FDCWD, w.in("x"), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, unix.S_ISUID|0o755)
			return err
		}),
		sets("openat-unnamed", func(w World) error {
			_, err := unix.Openat(unix.AT_FDCWD, w.Project, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, unix.S_ISUID|0o755)
			return err
		}),
		sets("mknodat", func(w World) error {
			return unix.Mknodat(unix.AT_FDCWD, w.in("x"), unix.S_IFREG|unix.S_ISUID|0o755, 0)
		}),
		sets("device", func(w World) error { return unix.Mknodat(unix.AT_FDCWD, w.in("x"), unix.S_IFCHR|0o600, 0) }),
	}
}

func chmodNew(w World) error {
	path, err := unix.BytePtrFromString(w.in("README.md"))
	if err != nil {
		return err
	}
	at := unix.AT_FDCWD
	return call(unix.SYS_FCHMODAT2, uintptr(at), uintptr(unsafe.Pointer(path)), unix.S_ISUID|0o755, 0)
}

func chmodOpened(w World) error {
	fd, err := unix.Open(w.in("README.md"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Fchmod(fd, unix.S_ISUID|0o755)
}
