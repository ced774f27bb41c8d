package attack

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// artifactAttacks are made by a program that was built in the jail: it may do
// less than what built it.
func artifactAttacks() []Attack {
	built := func(name string, want []Errno, prepare func() error, part func(World) []string) Attack {
		return Attack{Name: "artifact/" + name, Promise: "artifacts", Want: want, Mounts: []Errno{unix.EROFS}, run: func(w World) error {
			if err := copyFile(w.Attacker(), w.in("x")); err != nil {
				return err
			}
			if err := prepare(); err != nil {
				return err
			}
			return execute(w.in("x"), part(w)...)
		}}
	}
	nothing := func() error { return nil }
	has := func(name string) Attack {
		return built("variable-"+name, []Errno{unix.ENOENT}, func() error { return os.Setenv(name, "secret-value") },
			func(World) []string { return []string{lookRole, name} })
	}
	return []Attack{
		has("JAIL_ATTACK_API_KEY"), has("JAIL_ATTACK_TOKEN"), has("JAIL_ATTACK_PASSWORD"),
		built("writes-agent-state", []Errno{unix.EACCES}, nothing, func(w World) []string {
			return []string{createRole, w.State + "/mark"}
		}),
		built("reads-environment-of-its-parent", []Errno{unix.EACCES}, nothing, func(World) []string {
			return []string{readRole, fmt.Sprintf("/proc/%d/environ", os.Getpid())}
		}),
		built("traces-its-parent", []Errno{unix.EPERM}, nothing, func(World) []string {
			return []string{traceRole, fmt.Sprint(os.Getpid())}
		}),
	}
}
