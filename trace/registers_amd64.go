package trace

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// executeAgain steps back to the call's instruction (syscall, two bytes) with
// other arguments. It is made as any other call is, through the filter.
func executeAgain(pid int, to Execveat) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &r); err != nil {
		return err
	}
	r.Rip -= 2
	r.Rax = unix.SYS_EXECVEAT
	r.Orig_rax = ^uint64(0) // in no call: nothing for the kernel to restart
	r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8 = uint64(to.FD), to.Empty, to.Argv, to.Envp, unix.AT_EMPTY_PATH
	return unix.PtraceSetRegs(pid, &r)
}
