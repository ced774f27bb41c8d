package attack

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// carveAttacks are after what a wider grant does not reach: the file "kept" in
// the directory "protected" of the project, git's hooks, and the secret in the
// directory "hidden". In both directories a part is open again.
func carveAttacks() []Attack {
	fixed := []Errno{unix.EROFS, unix.EBUSY, unix.EXDEV, unix.EACCES}
	carves := func(name string, run func(World) error) Attack {
		return Attack{Name: "carve/" + name, Promise: "carve-outs", Want: fixed, run: run}
	}
	hidden := func(name string, run func(World) error) Attack {
		return Attack{Name: "carve/" + name, Promise: "carve-outs", Want: append([]Errno{unix.ENOENT}, fixed...), run: run}
	}
	const kept, secret = "protected/kept", "hidden/secret"
	return []Attack{
		carves("write", func(w World) error { return openOnly(w.in(kept), unix.O_WRONLY|unix.O_APPEND) }),
		carves("truncate", func(w World) error { return unix.Truncate(w.in(kept), 0) }),
		carves("create", func(w World) error { return create(w.in("protected/mark")) }),
		carves("unlink", func(w World) error { return unix.Unlink(w.in(kept)) }),
		carves("chmod", func(w World) error { return unix.Chmod(w.in(kept), 0o777) }),
		carves("rename", func(w World) error { return unix.Rename(w.in("protected"), w.in("away")) }),
		carves("replace", func(w World) error {
			if err := create(w.in("x")); err != nil {
				return fmt.Errorf("nothing of its own: %v", err)
			}
			return unix.Rename(w.in("x"), w.in(kept))
		}),
		carves("link", func(w World) error {
			return after(unix.Link(w.in(kept), w.in("x")), func() error { return openOnly(w.in("x"), unix.O_WRONLY) })
		}),
		carves("handle", func(w World) error { return reopen(w.in(kept), unix.O_WRONLY) }),
		carves("proc-root", func(w World) error { return openOnly("/proc/self/root"+w.in(kept), unix.O_WRONLY) }),
		carves("beside-what-is-open", func(w World) error {
			if err := create(w.in("protected/open/new")); err != nil {
				return fmt.Errorf("it is not open: %v", err)
			}
			return unix.Rename(w.in("protected/open/new"), w.in("protected/new"))
		}),
		carves("hook", func(w World) error { return create(w.in(".git/hooks/pre-commit")) }),
		carves("git-config", func(w World) error { return openOnly(w.in(".git/config"), unix.O_WRONLY|unix.O_APPEND) }),
		carves("git-config-replaced", func(w World) error {
			if err := create(w.in(".git/config.lock")); err != nil {
				return fmt.Errorf("no lock file: %v", err)
			}
			return unix.Rename(w.in(".git/config.lock"), w.in(".git/config"))
		}),
		carves("git-replaced", func(w World) error {
			return after(unix.Rename(w.in(".git"), w.in("away")), func() error { return os.MkdirAll(w.in(".git/hooks"), 0o755) })
		}),
		hidden("hidden", func(w World) error { return loot(w.in(secret)) }),
		hidden("hidden-list", func(w World) error { return list(filepath.Dir(w.in(secret))) }),
		hidden("hidden-through-link", func(w World) error {
			if err := unix.Symlink(filepath.Dir(secret), w.in("x")); err != nil {
				return fmt.Errorf("no link: %v", err)
			}
			return loot(w.in("x/secret"))
		}),
		hidden("hidden-renamed", func(w World) error {
			return after(unix.Rename(w.in("hidden"), w.in("away")), func() error { return loot(w.in("away/secret")) })
		}),
		hidden("hidden-through-handle", func(w World) error { return reopen(w.in(secret), unix.O_RDONLY) }),
		hidden("hidden-proc-root", func(w World) error { return loot("/proc/self/root" + w.in(secret)) }),
		hidden("hidden-beside-what-is-open", func(w World) error {
			if err := openOnly(w.in("hidden/open/note"), unix.O_RDONLY); err != nil {
				return fmt.Errorf("it is not open: %v", err)
			}
			return loot(w.in("hidden/open/../secret"))
		}),
	}
}

// reopen opens a handle of a file anew.
func reopen(path string, flags int) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return openOnly(fmt.Sprintf("/proc/self/fd/%d", fd), flags)
}
