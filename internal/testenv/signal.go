package testenv

import (
	"os/exec"
	"syscall"
)

// signal is what ended a command.
func signal(cmd *exec.Cmd) syscall.Signal {
	ws, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ws.Signal()
}
