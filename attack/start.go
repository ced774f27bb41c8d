package attack

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Start is the promise that package launch keeps at every start, whatever the
// plan: its doc.go has descriptors, capabilities, limits and TMPDIR.
const Start = "start"

// FirstInherited is the first of the descriptors that a careless parent leaves
// open: a directory, the secret and a socket. It is high, so that no runtime
// has a descriptor of its own there.
const FirstInherited = 20

// startAttacks use what a careless parent leaves to its children.
func startAttacks() []Attack {
	begins := func(name string, want Errno, run func(World) error) Attack {
		return Attack{Name: "start/" + name, Promise: Start, Want: []Errno{want}, run: run}
	}
	all := []Attack{
		begins("inherited-directory", unix.EBADF, func(World) error {
			fd, err := unix.Openat(FirstInherited, "../.ssh/id_test", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			return after(err, func() error { return lootFD(fd) })
		}),
		begins("inherited-file", unix.EBADF, func(World) error {
			b := make([]byte, 64)
			_, err := unix.Read(FirstInherited+1, b)
			return after(err, func() error { return lootBytes(b) })
		}),
		begins("inherited-socket", unix.EBADF, func(World) error {
			_, err := unix.Write(FirstInherited+2, []byte("x"))
			return err
		}),
		begins("inherited-chdir", unix.EBADF, func(World) error { return unix.Fchdir(FirstInherited) }),
		unlessAbsent(begins("core-dump", unix.EPERM, func(World) error {
			return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 4096, Max: 4096})
		}), unix.EPERM),
		unlessAbsent(begins("new-privileges", unix.EPERM, gainPrivileges), unix.EPERM),
		asRoot(begins("capabilities", unix.EPERM, func(World) error { return capabilities("CapInh", "CapPrm", "CapEff", "CapAmb") })),
		asRoot(begins("bounding-set", unix.EPERM, func(World) error { return capabilities("CapBnd") })),
	}
	for _, leak := range []string{
		"AWS_SECRET_ACCESS_KEY=secret-key", "GITHUB_TOKEN=secret-token", "SSH_AUTH_SOCK=/run/secret-agent", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/secret-bus",
		"LD_PRELOAD=/nowhere/secret-library.so", "LD_LIBRARY_PATH=/nowhere/secret-directory", "BASH_ENV=/nowhere/secret-script",
		"GIT_SSH_COMMAND=secret-command", "NODE_OPTIONS=--require=/nowhere/secret-script", "BASH_FUNC_ls%%=() { secret-function; }",
	} {
		name, _, _ := strings.Cut(leak, "=")
		a := begins("environment-"+strings.TrimSuffix(name, "%%"), unix.ENOENT, func(World) error {
			return after(present(name), func() error { return lootBytes([]byte(os.Getenv(name))) })
		})
		a.Env = []string{leak}
		all = append(all, a)
	}
	return all
}

func present(name string) error {
	if _, ok := os.LookupEnv(name); !ok {
		return unix.ENOENT
	}
	return nil
}

// gainPrivileges asks whether a set-id program would have an effect.
func gainPrivileges(World) error {
	set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err == nil && set == 1 {
		return unix.EPERM
	}
	return err
}

// capabilities succeeds when one of the sets has something in it.
func capabilities(sets ...string) error {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for _, line := range strings.Split(string(b), "\n") {
		name, value, _ := strings.Cut(line, ":")
		for _, set := range sets {
			if name == set && strings.Trim(value, " \t0") != "" {
				return nil
			}
		}
	}
	return unix.EPERM
}
