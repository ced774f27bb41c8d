package seccomp

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unsafe"

	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"

	"jail/plan"
)

// Assemble compiles rules to BPF with libseccomp. Calls of foreign
// architectures (int 0x80, x32) answer ENOSYS.
func Assemble(rules []Rule) ([]byte, error) {
	filter, err := libseccomp.NewFilter(libseccomp.ActAllow)
	if err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	defer filter.Release()
	if err := filter.SetBadArchAction(errnoAction(unix.ENOSYS)); err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	// Linux 5.11 remembers which calls the filter allows whatever their
	// arguments. Of the others these are frequent: they are compared first.
	for _, name := range []string{"openat", "ioctl"} {
		if err := prefer(filter, name); err != nil {
			return nil, fmt.Errorf("seccomp filter: %w", err)
		}
	}
	for _, r := range rules {
		if err := add(filter, r); err != nil {
			return nil, fmt.Errorf("seccomp rule for %s: %w", r.Call, err)
		}
	}
	return export(filter)
}

func errnoAction(e unix.Errno) libseccomp.ScmpAction {
	return libseccomp.ActErrno.SetReturnCode(int16(e))
}

func add(filter *libseccomp.ScmpFilter, r Rule) error {
	call, ok := number(r.Call)
	if !ok {
		return nil // this architecture does not have it
	}
	action := errnoAction(r.Errno)
	if r.Notify {
		action = libseccomp.ActNotify
	}
	if len(r.Args) == 0 {
		return filter.AddRuleExact(call, action)
	}
	var conds []libseccomp.ScmpCondition
	for _, a := range r.Args {
		c, err := libseccomp.MakeCondition(a.Index, libseccomp.CompareMaskedEqual, a.Mask, a.Value)
		if err != nil {
			return err
		}
		conds = append(conds, c)
	}
	return filter.AddRuleConditionalExact(call, action, conds)
}

func prefer(filter *libseccomp.ScmpFilter, name string) error {
	call, ok := number(name)
	if !ok {
		return nil
	}
	return filter.SetSyscallPriority(call, 255)
}

// number finds a system call by name: first among those newer than the library
// that jail may be built with, then in the library.
func number(name string) (libseccomp.ScmpSyscall, bool) {
	if nr := newer(name); nr != 0 {
		return libseccomp.ScmpSyscall(nr), true
	}
	call, err := libseccomp.GetSyscallFromName(name)
	// A negative number stands for a call of other architectures only.
	return call, err == nil && call >= 0
}

// newer numbers the calls that libseccomp 2.5.4 (Debian 12) does not name. From
// 424 on all architectures but alpha share one numbering.
func newer(name string) int {
	switch name {
	case "quotactl_fd":
		return 443
	case "memfd_secret":
		return 447
	case "process_mrelease":
		return 448
	case "set_mempolicy_home_node":
		return 450
	case "fchmodat2":
		return 452
	case "statmount":
		return 457
	case "listmount":
		return 458
	case "lsm_set_self_attr":
		return 460
	case "open_tree_attr":
		return 467
	case "file_setattr":
		return 469
	}
	return 0
}

func export(filter *libseccomp.ScmpFilter) ([]byte, error) {
	r, w, err := os.Pipe() // holds 64 KiB; the largest filter has 32 KiB
	if err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	defer r.Close()
	err = filter.ExportBPF(w)
	w.Close()
	if err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	var prog bytes.Buffer
	if _, err := io.Copy(&prog, r); err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	return prog.Bytes(), nil
}

// Probe tells whether the kernel takes filters. It asks for an action that
// every kernel with filters has.
func Probe() plan.Fact {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if e != 0 {
		return plan.Fact{Why: "the kernel takes no seccomp filters: " + e.Error(), Remedy: "use a kernel with CONFIG_SECCOMP_FILTER"}
	}
	return plan.Fact{OK: true}
}
