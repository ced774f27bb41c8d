package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// Rule refuses a system call with Errno when all Args match, or has it wait for
// the supervisor.
type Rule struct {
	Call   string
	Errno  unix.Errno
	Args   []Arg
	Notify bool
}

// Arg matches when argument Index, masked, has Value. Only equality is used:
// libseccomp 2.5.4 compiles 64-bit LT and GT wrongly (GHSA-4q85-33p6-j5g6).
type Arg struct {
	Index uint
	Mask  uint64
	Value uint64
}

// low compares the 32 bits that the kernel looks at where it takes an int.
func low(index uint, value uint64) Arg { return Arg{index, 0xffffffff, value} }

func refuse(call string, e unix.Errno, args ...Arg) Rule {
	return Rule{Call: call, Errno: e, Args: args}
}

func bits(index uint, mask uint64) Arg { return Arg{index, mask, mask} }

// Compile makes the rules of a plan.
func Compile(p plan.Plan) []Rule {
	rules := refused()
	rules = append(rules, cloneFlags()...)
	rules = append(rules, setIDBits()...)
	rules = append(rules, arguments()...)
	rules = append(rules, notified(p)...)
	return append(rules, sockets(p)...)
}

// refused are the calls that are refused whatever their arguments.
func refused() []Rule {
	var rules []Rule
	add := func(e unix.Errno, calls ...string) {
		for _, c := range calls {
			rules = append(rules, Rule{Call: c, Errno: e})
		}
	}
	// Programs that probe for these fall back on ENOSYS. clone3 and openat2
	// keep their flags and mode in memory, where no filter sees them.
	// pidfd_open is not among them: without it Bun (opencode) learns of the end
	// of a child before it has read its output, and loses it.
	add(
		unix.ENOSYS, "memfd_create", "memfd_secret", "clone3", "openat2",
		"io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup", "io_submit",
		"pidfd_send_signal", "userfaultfd", "process_madvise", "process_mrelease",
	)
	// Namespaces, mounts and what sees around them.
	add(
		unix.EPERM, "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree",
		"open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "statmount", "listmount",
		"open_by_handle_at", "swapon", "swapoff", "quotactl", "quotactl_fd", "file_setattr",
	)
	// The kernel itself: modules, tracing, clocks, ports, logs, accounting.
	add(
		unix.EPERM, "bpf", "perf_event_open", "kexec_load", "kexec_file_load", "init_module", "finit_module",
		"delete_module", "reboot", "syslog", "acct", "lookup_dcookie", "settimeofday", "clock_settime", "clock_adjtime",
		"adjtimex", "sethostname", "setdomainname", "iopl", "ioperm", "vhangup", "sysfs", "ustat", "uselib",
		"modify_ldt", "set_thread_area", "fanotify_init", "fanotify_mark",
		"lsm_set_self_attr",
	)
	// Other processes and what is shared between them beside files. SysV and
	// POSIX queues and semaphores have one name space for the whole host.
	add(
		unix.EPERM, "add_key", "request_key", "keyctl", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd",
		"move_pages", "migrate_pages", "mbind", "set_mempolicy", "set_mempolicy_home_node", "get_mempolicy",
		"msgget", "semget", "shmget", "msgsnd", "msgrcv", "msgctl", "semop", "semctl", "semtimedop", "shmat", "shmctl", "mq_open", "mq_unlink",
	)
	return rules
}

// cloneFlags refuses CLONE_NEW* of clone(2).
func cloneFlags() []Rule {
	var rules []Rule
	for _, f := range []uint64{
		unix.CLONE_NEWNS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC,
		unix.CLONE_NEWUSER, unix.CLONE_NEWPID, unix.CLONE_NEWNET,
	} {
		rules = append(rules, refuse("clone", unix.EPERM, bits(0, f)))
	}
	return rules
}

// setIDBits refuses modes that would let another user run a file as this one.
// The open family has a mode only with O_CREAT or O_TMPFILE.
func setIDBits() []Rule {
	var rules []Rule
	for _, bit := range []uint64{unix.S_ISUID, unix.S_ISGID} {
		for _, c := range []struct {
			call string
			mode uint
		}{
			{"chmod", 1},
			{"fchmod", 1},
			{"fchmodat", 2},
			{"fchmodat2", 2},
			{"creat", 1},
			{"mknod", 1},
			{"mknodat", 2}, // mkdir(2) masks these bits itself
		} {
			rules = append(rules, refuse(c.call, unix.EPERM, bits(c.mode, bit)))
		}
		for _, flag := range []uint64{unix.O_CREAT, unix.O_TMPFILE &^ unix.O_DIRECTORY} {
			rules = append(
				rules,
				refuse("open", unix.EPERM, bits(1, flag), bits(2, bit)),
				refuse("openat", unix.EPERM, bits(2, flag), bits(3, bit)),
			)
		}
	}
	return rules
}

// arguments refuses single operations of calls that are otherwise needed.
func arguments() []Rule {
	var rules []Rule
	// Typing into a terminal, taking over the console, loading line disciplines.
	for _, op := range []uint64{unix.TIOCSTI, tioclinux, unix.TIOCCONS, unix.TIOCSETD, fioSetOwn, siocSetPgrp} {
		rules = append(rules, refuse("ioctl", unix.EPERM, low(1, op)))
	}
	// Signals on input, for whom one likes: kernels before 6.18.40 do not hold
	// Landlock's scope against a process group here.
	for _, op := range []uint64{unix.F_SETOWN, unix.F_SETOWN_EX} {
		rules = append(rules, refuse("fcntl", unix.EPERM, low(1, op)))
	}
	// Device nodes; fifos and sockets are made by the same calls.
	for _, kind := range []uint64{unix.S_IFCHR, unix.S_IFBLK} {
		rules = append(
			rules,
			refuse("mknod", unix.EPERM, Arg{1, unix.S_IFMT, kind}),
			refuse("mknodat", unix.EPERM, Arg{2, unix.S_IFMT, kind}),
		)
	}
	// personality(2): what makes the next program easier to attack. Asking for
	// the value, 0xffffffff, has these bits too.
	for _, flag := range []uint64{readImpliesExec, mmapPageZero, addrCompatLayout} {
		rules = append(rules, refuse("personality", unix.EPERM, bits(0, flag)))
	}
	// Limits of other processes: lowering one to nothing ends a process outside
	// as surely as a signal, and Landlock does not cover it. 0 is the caller.
	for b := range 23 { // PID_MAX_LIMIT is 2^22
		rules = append(rules, refuse("prlimit64", unix.EPERM, bits(0, 1<<b)))
	}
	// What a later kernel adds is not let through unseen: ptrace(2) has no
	// requests below 0, seccomp(2) has operations up to 3.
	rules = append(rules, refuse("ptrace", unix.EPERM, bits(0, 1<<31)))
	for b := 2; b < 8; b++ {
		rules = append(rules, refuse("seccomp", unix.EPERM, bits(0, 1<<b)))
	}
	return rules
}

const (
	tioclinux        = 0x541c // linux/tiocl.h, TIOCLINUX
	fioSetOwn        = 0x8901 // asm/sockios.h, FIOSETOWN
	siocSetPgrp      = 0x8902 // SIOCSPGRP
	mmapPageZero     = 0x0100000
	addrCompatLayout = 0x0200000
	readImpliesExec  = 0x0400000
)

// except covers all values of the lowest width bits of an argument but the
// allowed ones, with few patterns: it halves the range until a half has nothing
// that is allowed. Each rule costs time at every start.
func except(index uint, width int, allowed ...uint64) []Arg {
	var args []Arg
	var halve func(prefix uint64, bit int)
	halve = func(prefix uint64, bit int) {
		mask := (uint64(1)<<width - 1) &^ (uint64(1)<<bit - 1)
		switch within := slices.ContainsFunc(allowed, func(v uint64) bool { return v&mask == prefix }); {
		case !within:
			args = append(args, Arg{index, mask, prefix})
		case bit > 0:
			halve(prefix, bit-1)
			halve(prefix|1<<(bit-1), bit-1)
		}
	}
	halve(0, width)
	return args
}
