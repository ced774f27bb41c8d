package attack

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// surface is an attack on the promise about the kernel's lesser doors.
func surface(name string, want Errno, run func(World) error) Attack {
	return Attack{Name: name, Promise: "kernel", Want: []Errno{want}, run: run}
}

// probe is an attack with arguments that are wrong on purpose, where success
// needs privilege or does harm: bare, the kernel gets as far as finding the
// mistake; in the jail the call is refused before anybody looks.
func probe(name string, want, mistake Errno, nr uintptr, args ...uintptr) Attack {
	a := surface(name, want, func(World) error { return call(nr, args...) })
	a.Bare = []Errno{mistake}
	return a
}

// asRoot says that both runs begin as root of a user namespace.
func asRoot(a Attack) Attack {
	a.Root = true
	return a
}

// unlessAbsent says what a kernel answers that was built without it.
func unlessAbsent(a Attack, absent ...Errno) Attack {
	a.Absent = absent
	return a
}

// namespaceAttacks look for a place where other rules hold.
func namespaceAttacks() []Attack {
	all := []Attack{
		surface("namespace/unshare-user", unix.EPERM, func(w World) error { return spawn(w, unix.SysProcAttr{Unshareflags: unix.CLONE_NEWUSER}) }),
		surface("namespace/clone-user", unix.EPERM, func(w World) error { return spawn(w, unix.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}) }),
		surface("namespace/clone-user-and-mount", unix.EPERM, func(w World) error {
			return spawn(w, unix.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID})
		}),
		surface("namespace/clone3-user", unix.ENOSYS, func(World) error { return cloneInto(unix.CLONE_NEWUSER) }),
		surface("namespace/clone3-plain", unix.ENOSYS, func(World) error { return cloneInto(0) }),
		asRoot(surface("namespace/setns", unix.EPERM, func(World) error {
			fd, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("no namespace: %v", err)
			}
			return unix.Setns(fd, unix.CLONE_NEWNET)
		})),
	}
	for name, flag := range map[string]int{
		"mount": unix.CLONE_NEWNS, "network": unix.CLONE_NEWNET, "pid": unix.CLONE_NEWPID, "ipc": unix.CLONE_NEWIPC,
		"uts": unix.CLONE_NEWUTS, "cgroup": unix.CLONE_NEWCGROUP, "time": unix.CLONE_NEWTIME,
	} {
		all = append(all, asRoot(surface("namespace/unshare-"+name, unix.EPERM, func(World) error { return unix.Unshare(flag) })))
	}
	return all
}

// spawn starts a program, with what clone(2) and unshare(2) can do meanwhile.
func spawn(w World, how unix.SysProcAttr) error {
	cmd := exec.Command(filepath.Join(w.Tools, "spare"))
	cmd.Args[0] = Word
	cmd.SysProcAttr = &how
	return cmd.Run()
}

// cloneInto forks with clone3(2).
func cloneInto(flags uint64) error {
	args := struct{ flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls uint64 }{flags: flags, exitSignal: uint64(unix.SIGCHLD)}
	pid, _, e := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	if e != 0 {
		return e
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0) // in the child nothing else is safe
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}

// mountAttacks change what paths mean.
func mountAttacks() []Attack {
	cwd := unix.AT_FDCWD
	return []Attack{
		asRoot(surface("mount/tmpfs", unix.EPERM, func(w World) error { return unix.Mount("none", w.Project, "tmpfs", 0, "") })),
		asRoot(surface("mount/bind", unix.EPERM, func(w World) error { return unix.Mount(w.Home, w.Project, "", unix.MS_BIND, "") })),
		asRoot(surface("mount/remount", unix.EPERM, func(World) error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") })),
		asRoot(surface("mount/open_tree", unix.EPERM, func(w World) error {
			_, err := unix.OpenTree(unix.AT_FDCWD, w.Home, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			return err
		})),
		asRoot(surface("mount/fsopen", unix.EPERM, func(World) error {
			_, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
			return err
		})),
		asRoot(surface("mount/mount_setattr", unix.EPERM, func(World) error {
			return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Propagation: unix.MS_PRIVATE})
		})),
		asRoot(surface("mount/chroot", unix.EPERM, func(w World) error { return unix.Chroot(w.Project) })),
		asRoot(probe("mount/pivot_root", unix.EPERM, unix.EFAULT, unix.SYS_PIVOT_ROOT, bad, bad)),
		asRoot(probe("mount/move_mount", unix.EPERM, unix.EFAULT, unix.SYS_MOVE_MOUNT, uintptr(cwd), bad, uintptr(cwd), bad, 0)),
		asRoot(probe("mount/umount2", unix.EPERM, unix.EFAULT, unix.SYS_UMOUNT2, bad, unix.MNT_DETACH)),
		probe("mount/fsconfig", unix.EPERM, unix.EINVAL, unix.SYS_FSCONFIG, bad, unix.FSCONFIG_CMD_CREATE, 0, 0, 0),
		unlessAbsent(probe("mount/listmount", unix.EPERM, unix.EFAULT, unix.SYS_LISTMOUNT, bad, bad, 1, 0), unix.ENOSYS),
		unlessAbsent(probe("mount/statmount", unix.EPERM, unix.EFAULT, unix.SYS_STATMOUNT, bad, bad, 1, 0), unix.ENOSYS),
	}
}

// kernelAttacks try what makes kernel bugs reachable, or sees around layers.
func kernelAttacks() []Attack {
	return []Attack{
		unlessAbsent(surface("kernel/io_uring", unix.ENOSYS, func(World) error {
			params := make([]byte, 120)
			return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])))
		}), unix.ENOSYS, unix.EPERM),
		unlessAbsent(surface("kernel/aio", unix.ENOSYS, func(World) error {
			ctx := new(uintptr)
			return call(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(ctx)))
		}), unix.ENOSYS),
		unlessAbsent(surface("kernel/userfaultfd", unix.ENOSYS, func(World) error {
			const userModeOnly = 1
			return call(unix.SYS_USERFAULTFD, userModeOnly|unix.O_CLOEXEC)
		}), unix.ENOSYS),
		surface("kernel/openat2", unix.ENOSYS, func(w World) error {
			_, err := unix.Openat2(unix.AT_FDCWD, w.in("README.md"), &unix.OpenHow{Flags: unix.O_RDONLY})
			return err
		}),
		surface("kernel/openat2-secret", unix.ENOSYS, func(w World) error {
			fd, err := unix.Openat2(unix.AT_FDCWD, w.Secret, &unix.OpenHow{Flags: unix.O_RDONLY})
			return after(err, func() error { return lootFD(fd) })
		}),
		unlessAbsent(probe("kernel/bpf", unix.EPERM, unix.E2BIG, unix.SYS_BPF, 0, 0, 1<<20), unix.ENOSYS),
		probe("kernel/perf_event_open", unix.EPERM, unix.EFAULT, unix.SYS_PERF_EVENT_OPEN, bad, 0, 0, 0, 0),
		unlessAbsent(probe("kernel/open_by_handle_at", unix.EPERM, unix.EFAULT, unix.SYS_OPEN_BY_HANDLE_AT, bad, bad, 0), unix.ENOSYS),
		unlessAbsent(probe("kernel/quotactl", unix.EPERM, unix.EINVAL, unix.SYS_QUOTACTL, 255, 0, 0, 0), unix.ENOSYS),
		unlessAbsent(probe("kernel/seccomp-other-operation", unix.EPERM, unix.EINVAL, unix.SYS_SECCOMP, 4, 0, 0)),
		surface("kernel/personality", unix.EPERM, func(World) error { return call(unix.SYS_PERSONALITY, 0x0400000) }), // READ_IMPLIES_EXEC
		surface("kernel/personality-page-zero", unix.EPERM, func(World) error { return call(unix.SYS_PERSONALITY, 0x0100000) }),
		asRoot(surface("kernel/sethostname", unix.EPERM, hostname)),
		probe("kernel/process_madvise", unix.ENOSYS, unix.EBADF, unix.SYS_PROCESS_MADVISE, bad, 0, 0, 0, 0),
	}
}

// hostname names this host, which root of a user namespace may only do in a
// namespace of its own. Failing to get one must not be the jail's answer.
func hostname(World) error {
	_ = unix.Unshare(unix.CLONE_NEWUTS)
	return unix.Sethostname([]byte("mark"))
}

// ipcAttacks use what is shared with other processes beside files.
func ipcAttacks() []Attack {
	rmid := func(control uintptr) func(uintptr, error) error {
		return func(id uintptr, err error) error {
			return after(err, func() error { return call(control, id, unix.IPC_RMID, 0) })
		}
	}
	shm := func(World) error { return rmid(unix.SYS_SHMCTL)(callValue(unix.SYS_SHMGET, 0, 4096, 0o600)) }
	msg := func(World) error { return rmid(unix.SYS_MSGCTL)(callValue(unix.SYS_MSGGET, 0, 0o600)) }
	sem := func(World) error {
		return after2(callValue(unix.SYS_SEMGET, 0, 1, 0o600))(func(id uintptr) error { return call(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID) })
	}
	return []Attack{
		unlessAbsent(surface("ipc/shmget", unix.EPERM, shm), unix.ENOSYS),
		unlessAbsent(surface("ipc/msgget", unix.EPERM, msg), unix.ENOSYS),
		unlessAbsent(surface("ipc/semget", unix.EPERM, sem), unix.ENOSYS),
		unlessAbsent(probe("ipc/shmat", unix.EPERM, unix.EINVAL, unix.SYS_SHMAT, bad, 0, 0), unix.ENOSYS),
		unlessAbsent(surface("ipc/mq_open", unix.EPERM, openQueue), unix.ENOSYS),
		unlessAbsent(surface("ipc/add_key", unix.EPERM, func(World) error {
			_, err := unix.AddKey("user", "jail-attack", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		}), unix.ENOSYS),
		unlessAbsent(surface("ipc/request_key", unix.EPERM, func(World) error {
			_, _ = unix.AddKey("user", "jail-attack", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			_, err := unix.RequestKey("user", "jail-attack", "", 0)
			return err
		}), unix.ENOSYS),
		unlessAbsent(surface("ipc/keyctl", unix.EPERM, func(World) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true)
			return err
		}), unix.ENOSYS),
	}
}

// after2 goes on with the value of a first step.
func after2(v uintptr, err error) func(func(uintptr) error) error {
	return func(next func(uintptr) error) error {
		return after(err, func() error { return next(v) })
	}
}

func openQueue(World) error {
	name, err := unix.BytePtrFromString(fmt.Sprintf("jail-attack-%d", unix.Getpid()))
	if err != nil {
		return err
	}
	err = call(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600, 0)
	return after(err, func() error { return call(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name))) })
}
