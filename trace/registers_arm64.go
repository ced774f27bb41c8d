package trace

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

const ntPrstatus = 1 // NT_PRSTATUS: the general registers

// executeAgain steps back to the call's instruction (svc, four bytes) with other
// arguments. It is made as any other call is, through the filter.
func executeAgain(pid int, to Execveat) error {
	var r unix.PtraceRegsArm64
	if err := unix.PtraceGetRegSetArm64(pid, ntPrstatus, &r); err != nil {
		return err
	}
	r.Pc -= 4
	r.Regs[8] = unix.SYS_EXECVEAT
	r.Regs[0], r.Regs[1], r.Regs[2], r.Regs[3], r.Regs[4] = uint64(to.FD), to.Empty, to.Argv, to.Envp, unix.AT_EMPTY_PATH
	return unix.PtraceSetRegSetArm64(pid, ntPrstatus, &r)
}
