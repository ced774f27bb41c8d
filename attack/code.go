package attack

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// codeAttacks have the kernel map a written file as code, as the dynamic loader
// does for `ld.so ./x`, LD_PRELOAD and dlopen(3). That a sealed copy is mapped is
// no success: what is written afterwards does not change it.
func codeAttacks() []Attack {
	maps := func(name string, run func(World) error) Attack {
		return Attack{
			Name: "code/" + name, Promise: "noexec", Want: []Errno{unix.EPERM, unix.EACCES},
			Mounts: []Errno{Sealed}, run: run,
		}
	}
	const rx = unix.PROT_READ | unix.PROT_EXEC
	return []Attack{
		maps("map", func(w World) error { return mapCode(w, rx, unix.MAP_PRIVATE, 0) }),
		maps("map-writable", func(w World) error { return mapCode(w, rx|unix.PROT_WRITE, unix.MAP_PRIVATE, 0) }),
		maps("map-shared", func(w World) error { return mapCode(w, rx, unix.MAP_SHARED, 0) }),
		maps("map-then-protect", func(w World) error { return mapCode(w, unix.PROT_READ, unix.MAP_PRIVATE, rx) }),
		maps("map-shared-then-protect", func(w World) error { return mapCode(w, unix.PROT_READ, unix.MAP_SHARED, rx) }),
		maps("map-then-all", func(w World) error {
			return mapCode(w, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE, rx|unix.PROT_WRITE)
		}),
		maps("map-readable", func(w World) error {
			// Not written here, but no program either: read, and nothing else.
			fd, err := unix.Open(w.readable("program"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("not opened: %v", err)
			}
			_, err = unix.Mmap(fd, 0, os.Getpagesize(), rx, unix.MAP_SHARED)
			return err
		}),
		maps("map-in-temp", func(World) error {
			path := fmt.Sprintf("%s/jail-attack-%d", os.TempDir(), os.Getpid())
			defer os.Remove(path)
			return mapFile(path, rx, unix.MAP_PRIVATE, 0)
		}),
	}
}

func mapCode(w World, prot, flags, later int) error { return mapFile(w.in("x"), prot, flags, later) }

// mapFile maps a page of a new file as code, changes the file, and looks whether
// the code has changed with it.
func mapFile(path string, prot, flags, later int) error {
	page := make([]byte, os.Getpagesize())
	copy(page, "\x7fELF before")
	if err := os.WriteFile(path, page, 0o644); err != nil {
		return fmt.Errorf("no file: %v", err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("not opened: %v", err)
	}
	code, err := unix.Mmap(fd, 0, len(page), prot, flags)
	if err != nil {
		return err
	}
	if later != 0 {
		if err := unix.Mprotect(code, later); err != nil {
			return err
		}
	}
	copy(page, "\x7fELF after!")
	if err := os.WriteFile(path, page, 0o644); err != nil {
		return fmt.Errorf("not written: %v", err)
	}
	if string(code[5:10]) != "after" {
		return Sealed
	}
	return nil
}
