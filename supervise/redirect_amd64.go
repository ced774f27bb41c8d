package supervise

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// toExecveat changes the call that is about to be made again. The kernel puts
// orig_rax into rax and steps back to the instruction.
func toExecveat(pid, fd int, empty, argv, envp uint64) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &r); err != nil {
		return err
	}
	if int64(r.Rax) != -513 || r.Orig_rax != unix.SYS_EXECVE && r.Orig_rax != unix.SYS_EXECVEAT {
		return fmt.Errorf("stopped in call %d with %d", r.Orig_rax, int64(r.Rax))
	}
	r.Orig_rax = unix.SYS_EXECVEAT
	r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8 = uint64(fd), empty, argv, envp, unix.AT_EMPTY_PATH
	return unix.PtraceSetRegs(pid, &r)
}
