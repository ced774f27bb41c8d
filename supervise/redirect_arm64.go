package supervise

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// toExecveat changes the call that is about to be made again. The kernel has
// put x0 back and stepped back to the instruction before it stops.
func toExecveat(pid, fd int, empty, argv, envp uint64) error {
	var r unix.PtraceRegsArm64
	if err := unix.PtraceGetRegSetArm64(pid, ntPrstatus, &r); err != nil {
		return err
	}
	if r.Regs[8] != unix.SYS_EXECVE && r.Regs[8] != unix.SYS_EXECVEAT {
		return fmt.Errorf("stopped in call %d", r.Regs[8])
	}
	r.Regs[8] = unix.SYS_EXECVEAT
	r.Regs[0], r.Regs[1], r.Regs[2], r.Regs[3], r.Regs[4] = uint64(fd), empty, argv, envp, unix.AT_EMPTY_PATH
	return unix.PtraceSetRegSetArm64(pid, ntPrstatus, &r)
}

const ntPrstatus = 1 // NT_PRSTATUS: the general registers
