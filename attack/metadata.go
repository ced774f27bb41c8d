package attack

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// metadataAttacks change a file outside and leave its content as it is.
func metadataAttacks() []Attack {
	old := func(name string, run func(path string) error) Attack {
		return Attack{Name: "metadata/" + name, Promise: "metadata", Want: []Errno{unix.EROFS}, Mounts: []Errno{unix.ENOENT}, run: func(w World) error {
			return run(w.out("old"))
		}}
	}
	flags := old("flags", setFlags)
	flags.Mounts = append(flags.Mounts, unix.EACCES) // what may not be read can't be opened for them
	flags.Absent = []Errno{unix.ENOTTY, unix.EOPNOTSUPP}
	attributes := old("attribute", func(path string) error { return unix.Setxattr(path, "user.jail-attack", []byte("x"), 0) })
	attributes.Absent = []Errno{unix.EOPNOTSUPP}
	return []Attack{
		old("chmod", func(path string) error { return unix.Chmod(path, 0o755) }),
		old("chown", func(path string) error { return unix.Chown(path, os.Getuid(), os.Getgid()) }),
		old("times", func(path string) error {
			return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0)
		}),
		old("touch", func(path string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, path, nil, 0) }),
		old("chmod-through-proc", func(path string) error { return unix.Chmod("/proc/self/root"+path, 0o700) }),
		old("chmod-through-handle", func(path string) error {
			fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
			return after(err, func() error { return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o700) })
		}),
		attributes, flags,
		{Name: "metadata/chmod-directory", Promise: "metadata", Want: []Errno{unix.EROFS}, Mounts: []Errno{unix.ENOENT}, run: func(w World) error {
			return unix.Chmod(w.Outside, 0o755)
		}},
		{Name: "metadata/chmod-readable", Promise: "metadata", Want: []Errno{unix.EROFS}, run: func(w World) error {
			return unix.Chmod(w.readable("note"), 0o600)
		}},
		{Name: "metadata/chmod-program", Promise: "metadata", Want: []Errno{unix.EROFS}, run: func(w World) error {
			return unix.Chmod(w.Tools+"/spare", 0o700)
		}},
	}
}

func setFlags(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const nodump = 0x40
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|nodump)
}

// listAttacks look for processes outside.
func listAttacks() []Attack {
	lists := func(name string, run func(World) error) Attack {
		return Attack{Name: "process/" + name, Promise: "processes", Want: []Errno{unix.ENOENT}, Mounts: []Errno{unix.ESRCH}, run: run}
	}
	return []Attack{
		lists("command-line", func(w World) error {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", w.Victim))
			if err == nil && !strings.Contains(string(b), victimRole) {
				return unix.ENOENT // a namesake in here
			}
			return err
		}),
		lists("status", func(w World) error {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.Victim))
			if err == nil && !strings.Contains(string(b), "NSpid:\t"+fmt.Sprint(w.Victim)) {
				return unix.ENOENT
			}
			return err
		}),
		lists("list", findVictim),
		lists("priority", func(w World) error { return unix.Setpriority(unix.PRIO_PROCESS, w.Victim, 19) }),
	}
}

// findVictim reads all of /proc.
func findVictim(World) error {
	dir, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, e := range dir {
		words, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && strings.HasPrefix(string(words), Word+"\x00"+victimRole) {
			return nil
		}
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return unix.ENOENT
}
