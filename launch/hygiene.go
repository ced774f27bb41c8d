package launch

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// setLimits lowers the limits of one process: never dump core, since a dump
// holds memory that was read from files; the rest as the rules say. A limit
// that is already lower stays (but the soft limit of open files, which Go raises
// when a process starts: it becomes the rule's).
func setLimits(limits []plan.Limit) error {
	// 1, not 0: that is the value at which the kernel does not even start a
	// program that core_pattern pipes to (core(5)), and no file is that small.
	all := append([]plan.Limit{{Name: "core", Value: 1}}, limits...)
	for _, l := range all {
		which := resource(l.Name)
		var have unix.Rlimit
		if err := unix.Getrlimit(which, &have); err != nil {
			return fmt.Errorf("limit %s: %w", l.Name, err)
		}
		want := unix.Rlimit{Cur: min(have.Cur, l.Value), Max: min(have.Max, l.Value)}
		if err := unix.Setrlimit(which, &want); err != nil {
			return fmt.Errorf("limit %s: %w", l.Name, err)
		}
	}
	return nil
}

func resource(name string) int {
	switch name {
	case "core":
		return unix.RLIMIT_CORE
	case "open_files":
		return unix.RLIMIT_NOFILE
	case "file_size":
		return unix.RLIMIT_FSIZE
	case "cpu":
		return unix.RLIMIT_CPU
	case "memory":
		return unix.RLIMIT_AS
	}
	panic("launch: no limit is called " + name)
}

// dropCapabilities empties every capability set of this thread. An ordinary
// user has none; root, and users in some containers, do.
func dropCapabilities() error {
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	// The bounding set can be lowered only with CAP_SETPCAP; without it there is
	// nothing that no_new_privs would let through it.
	for c := 0; c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
			break
		}
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&hdr, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}
