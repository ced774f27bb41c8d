package seccomp

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"jail/internal/testenv"
)

// maxInstructions is BPF_MAXINSNS of the kernel.
const maxInstructions = 4096

func TestProgramsFit(t *testing.T) {
	for _, n := range networks() {
		if p := assemble(t, n.text, n.abi); len(p) >= maxInstructions || len(p) < 50 {
			t.Errorf("%q: %d instructions", n.text, len(p))
		} else {
			t.Logf("%q, ABI %d: %d instructions", n.text, n.abi, len(p))
		}
	}
}

// Single calls; "" stands for a filter of the plainest plan.
func TestFilter(t *testing.T) {
	const int32Garbage = 0xdead_beef << 32
	p, ported := assemble(t, "", 7), assemble(t, "network.connect = [443]", 7)
	for _, tt := range []struct {
		name string
		args []uint64
		want string
	}{
		{"memfd_create", nil, "ENOSYS"},
		{"memfd_secret", nil, "ENOSYS"},
		{"clone3", nil, "ENOSYS"},
		{"openat2", nil, "ENOSYS"},
		{"io_uring_setup", nil, "ENOSYS"},
		{"io_uring_enter", nil, "ENOSYS"},
		{"io_uring_register", nil, "ENOSYS"},
		{"userfaultfd", nil, "ENOSYS"},
		{"setns", nil, "EPERM"},
		{"mount", nil, "EPERM"},
		{"umount2", nil, "EPERM"},
		{"pivot_root", nil, "EPERM"},
		{"chroot", nil, "EPERM"},
		{"move_mount", nil, "EPERM"},
		{"open_tree", nil, "EPERM"},
		{"open_tree_attr", nil, "EPERM"},
		{"fsopen", nil, "EPERM"},
		{"fsmount", nil, "EPERM"},
		{"fsconfig", nil, "EPERM"},
		{"fspick", nil, "EPERM"},
		{"mount_setattr", nil, "EPERM"},
		{"open_by_handle_at", nil, "EPERM"},
		{"bpf", nil, "EPERM"},
		{"perf_event_open", nil, "EPERM"},
		{"kexec_load", nil, "EPERM"},
		{"finit_module", nil, "EPERM"},
		{"add_key", nil, "EPERM"},
		{"keyctl", nil, "EPERM"},
		{"request_key", nil, "EPERM"},
		{"process_vm_readv", nil, "EPERM"},
		{"process_vm_writev", nil, "EPERM"},
		{"pidfd_getfd", nil, "EPERM"},
		{"shmget", nil, "EPERM"},
		{"mq_open", nil, "EPERM"},
		{"personality", []uint64{0}, "allow"},
		{"personality", []uint64{8}, "allow"},         // PER_LINUX32
		{"personality", []uint64{0x0040000}, "allow"}, // ADDR_NO_RANDOMIZE, for debuggers
		{"personality", []uint64{0x0400000}, "EPERM"}, // READ_IMPLIES_EXEC
		{"personality", []uint64{0x0400000 | int32Garbage}, "EPERM"},
		{"personality", []uint64{0x0100000 | 0x40000}, "EPERM"},
		{"ptrace", []uint64{unix.PTRACE_TRACEME}, "allow"},
		{"ptrace", []uint64{unix.PTRACE_SEIZE, 1}, "allow"},
		{"seccomp", []uint64{unix.SECCOMP_SET_MODE_FILTER}, "allow"},
		// Namespaces.
		{"clone", []uint64{uint64(unix.SIGCHLD)}, "allow"},
		{"clone", []uint64{0x3d0f00}, "allow"}, // pthread_create
		{"clone", []uint64{unix.CLONE_VM | unix.CLONE_VFORK | uint64(unix.SIGCHLD)}, "allow"},
		{"clone", []uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, "EPERM"},
		{"clone", []uint64{unix.CLONE_NEWUSER | int32Garbage}, "EPERM"},
		{"clone", []uint64{unix.CLONE_NEWNS}, "EPERM"},
		{"clone", []uint64{unix.CLONE_NEWPID}, "EPERM"},
		{"clone", []uint64{unix.CLONE_NEWNET}, "EPERM"},
		{"clone", []uint64{unix.CLONE_NEWIPC}, "EPERM"},
		{"clone", []uint64{unix.CLONE_NEWUTS}, "EPERM"},
		{"clone", []uint64{unix.CLONE_NEWCGROUP}, "EPERM"},
		{"unshare", []uint64{unix.CLONE_NEWUSER | unix.CLONE_NEWNS}, "EPERM"},
		{"unshare", []uint64{unix.CLONE_NEWUSER | int32Garbage}, "EPERM"},
		{"unshare", []uint64{unix.CLONE_NEWTIME}, "EPERM"},
		// Terminals: the kernel takes the low 32 bits of the request.
		{"ioctl", []uint64{0, unix.TIOCGWINSZ}, "allow"},
		{"ioctl", []uint64{0, unix.TCGETS}, "allow"},
		{"ioctl", []uint64{0, unix.TIOCINQ}, "allow"},
		{"ioctl", []uint64{0, unix.TIOCSCTTY}, "allow"},
		{"ioctl", []uint64{0, unix.TIOCSTI}, "EPERM"},
		{"ioctl", []uint64{0, unix.TIOCSTI | int32Garbage}, "EPERM"},
		{"ioctl", []uint64{1 << 40, unix.TIOCSTI | 1<<32}, "EPERM"},
		{"ioctl", []uint64{0, 0x541c}, "EPERM"},
		{"ioctl", []uint64{0, 0x541c | int32Garbage}, "EPERM"},
		{"ioctl", []uint64{0, unix.TIOCSETD}, "EPERM"},
		{"ioctl", []uint64{0, unix.TIOCCONS}, "EPERM"},
		// Modes.
		{"fchmod", []uint64{3, 0o755}, "allow"},
		{"fchmod", []uint64{3, 0o1777}, "allow"},
		{"fchmod", []uint64{3, 0o4755}, "EPERM"},
		{"fchmod", []uint64{3, 0o2755}, "EPERM"},
		{"fchmod", []uint64{3, 0o4755 | int32Garbage}, "EPERM"},
		{"fchmodat", []uint64{0, 0, 0o644}, "allow"},
		{"fchmodat", []uint64{0, 0, 0o6000}, "EPERM"},
		{"fchmodat2", []uint64{0, 0, 0o2000}, "EPERM"},
		{"mkdirat", []uint64{0, 0, 0o755}, "allow"},
		{"mkdirat", []uint64{0, 0, 0o2755}, "allow"},               // mkdir(2) masks the bits itself
		{"openat", []uint64{0, 0, unix.O_RDONLY, 0o4755}, "allow"}, // no mode without O_CREAT
		{"openat", []uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o644}, "allow"},
		{"openat", []uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o4755}, "EPERM"},
		{"openat", []uint64{0, 0, unix.O_CREAT | int32Garbage, 0o2755 | int32Garbage}, "EPERM"},
		{"openat", []uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o4700}, "EPERM"},
		{"openat", []uint64{0, 0, unix.O_DIRECTORY, 0o4700}, "allow"},
		{"mknodat", []uint64{0, 0, unix.S_IFIFO | 0o600}, "allow"},
		{"mknodat", []uint64{0, 0, unix.S_IFSOCK | 0o600}, "allow"},
		{"mknodat", []uint64{0, 0, unix.S_IFREG | 0o600}, "allow"},
		{"mknodat", []uint64{0, 0, unix.S_IFCHR | 0o600}, "EPERM"},
		{"mknodat", []uint64{0, 0, unix.S_IFBLK | 0o600 | int32Garbage}, "EPERM"},
		{"mknodat", []uint64{0, 0, unix.S_IFREG | 0o4600}, "EPERM"},
		{"sendto", []uint64{0, 0, 0, unix.MSG_FASTOPEN}, "allow"}, // ports are free
	} {
		if got := p.action(t, on(t, tt.name, tt.args...)); got != tt.want {
			t.Errorf("%s %#x: want %s, got %s", tt.name, tt.args, tt.want, got)
		}
	}
	for name, arg := range map[string]int{"sendto": 3, "sendmsg": 2, "sendmmsg": 3} {
		c := on(t, name)
		if got := ported.action(t, c); got != "allow" {
			t.Errorf("%s: %s", name, got)
		}
		c.args[arg] = unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL | int32Garbage
		if got := ported.action(t, c); got != "EPERM" {
			t.Errorf("%s with MSG_FASTOPEN: %s", name, got)
		}
	}
}

// What programs do every day is never refused, whatever the plan.
func TestEverydayCalls(t *testing.T) {
	names := []string{
		"read", "write", "close", "fstat", "lseek", "mmap", "mprotect", "munmap", "brk", "rt_sigaction", "rt_sigprocmask", "ioctl", "pread64",
		"pwrite64", "readv", "writev", "sched_yield", "mremap", "madvise", "dup", "dup3", "nanosleep", "getpid", "socketpair", "connect",
		"accept4", "sendto", "recvfrom", "sendmsg", "recvmsg", "shutdown", "bind", "listen", "getsockname", "getpeername", "setsockopt",
		"getsockopt", "clone", "execve", "execveat", "exit", "exit_group", "wait4", "waitid", "kill", "tgkill", "uname", "fcntl", "flock", "fsync",
		"ftruncate", "getdents64", "getcwd", "chdir", "fchdir", "renameat2", "unlinkat", "symlinkat", "linkat", "readlinkat", "fchmod", "fchownat",
		"umask", "gettimeofday", "getrlimit", "prlimit64", "getrusage", "sysinfo", "ptrace", "getuid", "setpgid", "setsid", "getppid", "prctl",
		"futex", "epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "timerfd_create", "signalfd4", "inotify_init1", "pipe2", "ppoll",
		"pselect6", "set_robust_list", "rseq", "getrandom", "statx", "newfstatat", "faccessat2", "copy_file_range", "close_range",
		"openat", "mkdirat", "utimensat", "fallocate", "sendfile", "splice", "clock_gettime", "clock_nanosleep", "sched_getaffinity", "sigaltstack",
		"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp", "membarrier", "mlock", "get_robust_list",
	}
	if runtime.GOARCH == "amd64" {
		names = append(names, "open", "stat", "lstat", "poll", "access", "pipe", "select", "dup2", "fork", "vfork", "rename", "mkdir", "rmdir",
			"unlink", "symlink", "readlink", "chmod", "arch_prctl", "creat", "epoll_wait", "getdents", "utime", "pause", "alarm")
	}
	for _, n := range networks() {
		p := assemble(t, n.text, n.abi)
		for _, name := range names {
			c := on(t, name)
			if name == "socketpair" {
				c.args = [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}
			}
			if got := p.action(t, c); got != "allow" {
				t.Errorf("%q: %s: %s", n.text, name, got)
			}
		}
	}
}

// Calls of another architecture find none of their numbers: int 0x80 and x32
// have numbers of their own, which the rules do not speak of.
func TestForeignCalls(t *testing.T) {
	p := assemble(t, "", 7)
	foreign := []uint32{
		unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_AARCH64, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_RISCV64, 0, 0xffffffff,
	}
	foreign = slices.DeleteFunc(foreign, func(a uint32) bool { return a == arch(t) })
	for _, a := range foreign {
		for nr := range uint32(512) {
			if got := p.action(t, call{nr: nr, arch: a}); got != "ENOSYS" {
				t.Fatalf("architecture %#x, call %d: %s", a, nr, got)
			}
		}
	}
	if runtime.GOARCH != "amd64" {
		return
	}
	const x32 = 0x40000000
	for nr := range uint32(600) {
		if got := p.action(t, call{nr: nr | x32, arch: arch(t)}); got != "ENOSYS" {
			t.Fatalf("x32 call %d: %s", nr, got)
		}
	}
}

// Whatever the arguments are, a rule's call is answered as the rules say, and
// other calls are allowed: the assembled program against the rules themselves.
func TestProgramEqualsRules(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range networks() {
		rules := Compile(planOf(t, n.text, n.abi))
		p, byNumber := assemble(t, n.text, n.abi), map[uint32][]Rule{}
		for _, rule := range rules {
			if nr, ok := number(rule.Call); ok {
				byNumber[uint32(nr)] = append(byNumber[uint32(nr)], rule)
			}
		}
		for range 20000 {
			c := call{nr: r.Uint32N(480), arch: arch(t)}
			mine := byNumber[c.nr]
			for i := range c.args {
				c.args[i] = r.Uint64() & []uint64{0xf, 0xfff, 0xffffffff, ^uint64(0)}[r.IntN(4)]
			}
			if len(mine) > 0 { // make one of its rules match, nearly
				for _, a := range mine[r.IntN(len(mine))].Args {
					c.args[a.Index] = c.args[a.Index]&^a.Mask | a.Value
				}
			}
			want := []string{"allow"}
			for _, rule := range mine {
				if !slices.ContainsFunc(rule.Args, func(a Arg) bool { return c.args[a.Index]&a.Mask != a.Value }) {
					want = append(want, unix.ErrnoName(rule.Errno))
				}
			}
			if len(want) > 1 { // refused by one rule or several
				want = want[1:]
			}
			if got := p.action(t, c); !slices.Contains(want, got) {
				t.Fatalf("%q: %+v: want %v, got %s", n.text, c, want, got)
			}
		}
	}
}

// The kernel takes every program.
// load puts a program on the calling thread.
func load(prog []byte) error {
	fprog := unix.SockFprog{
		Len:    uint16(len(prog) / unix.SizeofSockFilter),
		Filter: (*unix.SockFilter)(unsafe.Pointer(&prog[0])),
	}
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	if e != 0 {
		return e
	}
	return nil
}

func TestKernelTakesPrograms(t *testing.T) {
	var err error
	if fact := Probe(); !fact.OK {
		err = unix.ENOSYS
	}
	testenv.Need(t, "seccomp", err)
	for _, n := range networks() {
		prog, err := Assemble(Compile(planOf(t, n.text, n.abi)))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends
			err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
			if err == nil {
				err = load(prog)
			}
			if err == nil {
				if _, e := unix.MemfdCreate("x", 0); e != unix.ENOSYS {
					t.Errorf("memfd_create under the filter: %v", e)
				}
				if e := unix.Unshare(unix.CLONE_NEWUSER); e != unix.EPERM {
					t.Errorf("unshare under the filter: %v", e)
				}
				if e := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); e != unix.EPERM {
					t.Errorf("mount under the filter: %v", e)
				}
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Errorf("%q: %v", n.text, err)
		}
	}
}
