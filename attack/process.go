package attack

import (
	"fmt"
	"os"
	"os/signal"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processAttacks are after what other processes of this user hold.
func processAttacks() []Attack {
	gone := []Errno{unix.ENOENT, unix.ESRCH} // in a pid namespace of its own
	file := func(name, path string) Attack {
		return Attack{Name: "process/" + name, Promise: "ptrace", Want: []Errno{unix.EACCES, unix.EPERM}, Mounts: gone, run: func(w World) error {
			return loot(fmt.Sprintf("/proc/%d/%s", w.Victim, path))
		}}
	}
	through := func(name string, path func(World) string) Attack {
		return Attack{Name: "process/" + name, Promise: "ptrace", Want: []Errno{unix.EACCES, unix.EPERM}, Mounts: gone, run: func(w World) error {
			return loot(fmt.Sprintf("/proc/%d/%s", w.Victim, path(w)))
		}}
	}
	traced := func(name string, want Errno, run func(World) error) Attack {
		return Attack{Name: "process/" + name, Promise: "ptrace", Want: []Errno{want}, Mounts: gone, run: run}
	}
	return []Attack{
		file("environ", "environ"),
		file("descriptor", "fd/3"),
		through("root", func(w World) string { return "root" + w.Secret }),
		through("cwd", func(World) string { return "cwd/../.ssh/id_test" }),
		through("task-root", func(w World) string { return fmt.Sprintf("task/%d/root%s", w.Victim, w.Secret) }),
		{Name: "process/parent-environ", Promise: "ptrace", Want: []Errno{unix.EACCES, unix.EPERM}, Mounts: gone, run: func(World) error {
			return readSome(fmt.Sprintf("/proc/%d/environ", unix.Getppid()))
		}},
		{Name: "process/descriptor-name", Promise: "ptrace", Want: []Errno{unix.EACCES, unix.EPERM}, Mounts: gone, run: func(w World) error {
			_, err := unix.Readlink(fmt.Sprintf("/proc/%d/fd/3", w.Victim), make([]byte, 256))
			return err
		}},
		{Name: "process/maps", Promise: "ptrace", Want: []Errno{unix.EACCES, unix.EPERM}, Mounts: gone, run: func(w World) error {
			return readSome(fmt.Sprintf("/proc/%d/maps", w.Victim))
		}},
		{Name: "process/memory-file", Promise: "ptrace", Want: []Errno{unix.EACCES, unix.EPERM}, Mounts: gone, run: func(w World) error {
			return readMemoryFile(w, unix.O_RDONLY)
		}},
		{Name: "process/memory-file-for-writing", Promise: "ptrace", Want: []Errno{unix.EACCES, unix.EPERM}, Mounts: gone, run: func(w World) error {
			return readMemoryFile(w, unix.O_RDWR)
		}},
		traced("process_vm_readv", unix.EPERM, readMemory),
		traced("process_vm_writev", unix.EPERM, writeMemory),
		traced("ptrace-attach", unix.EPERM, func(w World) error { return unix.PtraceAttach(w.Victim) }),
		traced("ptrace-seize", unix.EPERM, func(w World) error { return unix.PtraceSeize(w.Victim) }),
		traced("pidfd_getfd", unix.EPERM, takeDescriptor),
		traced("kcmp", unix.EPERM, func(w World) error {
			return call(unix.SYS_KCMP, uintptr(unix.Getpid()), uintptr(w.Victim), 1, 0, 0)
		}),
	}
}

func readSome(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	n, err := unix.Read(fd, make([]byte, 64))
	if err == nil && n == 0 {
		return fmt.Errorf("%s is empty", path)
	}
	return err
}

func readMemoryFile(w World, flags int) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/mem", w.Victim), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	b := make([]byte, 64)
	_, err = unix.Pread(fd, b, int64(w.Address))
	return after(err, func() error { return lootBytes(b) })
}

func readMemory(w World) error {
	b := make([]byte, 64)
	_, err := unix.ProcessVMReadv(w.Victim, []unix.Iovec{{Base: &b[0], Len: 64}}, []unix.RemoteIovec{{Base: uintptr(w.Address), Len: 64}}, 0)
	return after(err, func() error { return lootBytes(b) })
}

func writeMemory(w World) error {
	b := []byte("overwritten")
	n := len(b)
	_, err := unix.ProcessVMWritev(w.Victim, []unix.Iovec{{Base: &b[0], Len: uint64(n)}}, []unix.RemoteIovec{{Base: uintptr(w.Address), Len: n}}, 0)
	return err
}

// takeDescriptor takes the secret out of the victim's hand.
func takeDescriptor(w World) error {
	// Without a pidfd, -1, the next call is still refused by its own rule.
	pidfd, _ := unix.PidfdOpen(w.Victim, 0)
	fd, err := unix.PidfdGetfd(pidfd, 3, 0)
	return after(err, func() error { return loot(fmt.Sprintf("/proc/self/fd/%d", fd)) })
}

// signalAttacks end or disturb processes outside. None is sent to more than
// the victim, or it is the signal 0.
func signalAttacks() []Attack {
	signals := func(name string, want Errno, run func(World) error) Attack {
		return Attack{Name: "signal/" + name, Promise: "signals", Want: []Errno{want}, Mounts: []Errno{unix.ESRCH, unix.EPERM}, run: run}
	}
	limited := func(which int, value uint64) func(World) error {
		return func(w World) error {
			return unix.Prlimit(w.Victim, which, &unix.Rlimit{Cur: value, Max: value}, nil)
		}
	}
	return []Attack{
		signals("kill", unix.EPERM, func(w World) error { return unix.Kill(w.Victim, unix.SIGKILL) }),
		signals("stop", unix.EPERM, func(w World) error { return unix.Kill(w.Victim, unix.SIGSTOP) }),
		signals("ask", unix.EPERM, func(w World) error { return unix.Kill(w.Victim, 0) }),
		signals("group", unix.EPERM, func(w World) error { return unix.Kill(-w.Victim, unix.SIGTERM) }),
		signals("thread", unix.EPERM, func(w World) error { return unix.Tgkill(w.Victim, w.Victim, unix.SIGTERM) }),
		signals("tkill", unix.EPERM, func(w World) error { return call(unix.SYS_TKILL, uintptr(w.Victim), uintptr(unix.SIGTERM)) }),
		signals("queued", unix.EPERM, queueSignal),
		signals("pidfd", unix.ENOSYS, signalByDescriptor),
		signals("parent", unix.EPERM, func(World) error { return unix.Kill(unix.Getppid(), 0) }),
		signals("owner-of-socket", unix.EPERM, signalByInput),
		signals("own-group", unix.ETIMEDOUT, signalGroup),
		// A limit that is passed already is a signal too: SIGKILL, SIGXFSZ.
		signals("limit-processor-time", unix.EPERM, limited(unix.RLIMIT_CPU, 0)),
		signals("limit-file-size", unix.EPERM, limited(unix.RLIMIT_FSIZE, 0)),
	}
}

func queueSignal(w World) error {
	info := make([]int32, 32)
	info[0], info[2] = int32(unix.SIGTERM), -1 // SI_QUEUE
	return call(unix.SYS_RT_SIGQUEUEINFO, uintptr(w.Victim), uintptr(unix.SIGTERM), uintptr(unsafe.Pointer(&info[0])))
}

// signalByDescriptor needs no pidfd_open(2): a directory of /proc will do.
func signalByDescriptor(w World) error {
	pidfd, err := unix.Open(fmt.Sprintf("/proc/%d", w.Victim), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(pidfd, unix.SIGTERM, nil, 0)
}

// signalByInput has the kernel send the signal: that a socket has input is told
// to its owner. Nobody tells the sender that it was not delivered; ETIMEDOUT
// says that the victim has not left its mark.
func signalByInput(w World) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("no pair: %v", err)
	}
	for _, step := range [][2]int{
		{unix.F_SETOWN, w.Victim}, {unix.F_SETSIG, int(unix.SIGUSR1)}, {unix.F_SETFL, unix.O_ASYNC},
	} {
		if _, err := unix.FcntlInt(uintptr(pair[0]), step[0], step[1]); err != nil {
			return err
		}
	}
	if _, err := unix.Write(pair[1], []byte("x")); err != nil {
		return err
	}
	return mark(w)
}

// signalGroup joins the victim's process group and signals all of it, itself
// included, as a jail that a script starts shares the script's group.
func signalGroup(w World) error {
	signal.Ignore(unix.SIGUSR1)
	if err := unix.Setpgid(0, w.Victim); err != nil {
		return err
	}
	return after(unix.Kill(0, unix.SIGUSR1), func() error { return mark(w) })
}

// mark waits for what the victim leaves when a signal has reached it.
func mark(w World) error {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(w.out(signalled)); err == nil {
			return nil
		}
	}
	return unix.ETIMEDOUT
}
