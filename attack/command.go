package attack

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// commandAttacks are after a program that is denied.
func commandAttacks() []Attack {
	refused := []Errno{unix.EACCES}
	denied := func(name string, want []Errno, run func(World) error) Attack {
		return Attack{Name: "command/" + name, Promise: "commands", Want: want, Mounts: []Errno{unix.EROFS}, run: run}
	}
	return []Attack{
		denied("execute", refused, func(w World) error { return execute(w.Denied) }),
		denied("read", refused, func(w World) error { return openOnly(w.Denied, unix.O_RDONLY) }),
		denied("symlink", refused, func(w World) error {
			if err := unix.Symlink(w.Denied, w.in("harmless")); err != nil {
				return fmt.Errorf("no link: %v", err)
			}
			return execute(w.in("harmless"))
		}),
		denied("proc-root", refused, func(w World) error { return execute("/proc/self/root" + w.Denied) }),
		denied("working-directory", refused, func(w World) error {
			if err := unix.Chdir(w.Tools); err != nil {
				return fmt.Errorf("not there: %v", err)
			}
			return execute("./" + filepath.Base(w.Denied))
		}),
		denied("handle", refused, func(w World) error {
			return execute(w.Attacker(), handleRole, w.Denied)
		}),
		denied("other-name", refused, func(w World) error { return execute(filepath.Join(w.Tools, "renamed")) }),
		denied("link", []Errno{unix.EXDEV, unix.EACCES}, func(w World) error { return unix.Link(w.Denied, w.in("x")) }),
		denied("map", refused, func(w World) error {
			fd, err := unix.Open(w.Denied, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			_, err = unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
			return err
		}),
		// Its bytes can be had elsewhere: downloaded, for one.
		denied("same-bytes", refused, func(w World) error {
			if err := copyFile(w.readable("denied"), w.in("harmless")); err != nil {
				return err
			}
			return execute(w.in("harmless"))
		}),
		{Name: "command/same-bytes-mapped", Promise: "noexec", Want: []Errno{unix.EACCES, unix.EPERM}, run: func(w World) error {
			if err := copyFile(w.readable("denied"), w.in("x")); err != nil {
				return err
			}
			fd, err := unix.Open(w.in("x"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("not opened: %v", err)
			}
			_, err = unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
			return err
		}},
	}
}
