package launch

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"jail/mounts"
)

// The names under which jail calls itself. main recognises them; with no order
// on descriptor 3 both do nothing.
const (
	StageName   = "jail: init"
	ConfineName = "jail: confine"
)

// Stage is process 1 of the jail's namespaces. It builds the file system view,
// starts the command through [Confine], reaps, and ends everything when the
// command ends: the kernel kills what is left with process 1.
func Stage() int {
	o, err := readOrder()
	if err != nil {
		fmt.Fprintln(os.Stderr, "jail: error:", err)
		return 125
	}
	signals := takeSignals()
	if err := o.Layout.Enter(); err != nil {
		if errors.Is(err, unix.EPERM) { // AppArmor gives the namespace, but no rights in it
			err = o.Plan.WithoutMounts(err)
		}
		return report(err)
	}
	// Until now the working directory was on a mount that is read-only now.
	if err := unix.Chdir(o.Plan.Cwd); err != nil {
		return report(fmt.Errorf("changing to %q: %w", o.Plan.Cwd, err))
	}
	pid, err := startConfine()
	if err != nil {
		return report(err)
	}
	for _, fd := range []int{orderFD, exeFD, errorFD} {
		unix.Close(fd)
	}
	go forward(signals, func(s os.Signal) { syscall.Kill(pid, s.(syscall.Signal)) })
	go listen(pid)
	var tidying sync.Mutex
	go watch(&o.Layout, &tidying)
	return reap(pid, &tidying)
}

// watch puts carve-outs back that the host has dropped by replacing what they
// covered. The jail is stopped meanwhile; what it did between the host's rename
// and the kernel's notice can't be undone, so it is said.
func watch(l *mounts.Layout, tidying *sync.Mutex) {
	for range l.Dropped() {
		tidying.Lock()
		syscall.Kill(-1, syscall.SIGSTOP)
		for _, c := range l.Missing() {
			if err := putBack(l, c); err != nil {
				fmt.Fprintf(os.Stderr, "jail: warning: %q was replaced from outside and is not %s any more: %v\n", c.Path, c.Kind, err)
			} else {
				fmt.Fprintf(os.Stderr, "jail: note: %q was replaced from outside; it is %s again\n", c.Path, c.Kind)
			}
		}
		syscall.Kill(-1, syscall.SIGCONT)
		tidying.Unlock()
	}
}

// putBack covers a path again. A rename on the host takes the mount away a moment
// before the new file is there.
func putBack(l *mounts.Layout, c mounts.Cover) (err error) {
	for range 50 {
		if err = l.Cover(c); !errors.Is(err, unix.ENOENT) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return err
}

// startConfine starts jail once more, from the descriptor that the parent has
// opened outside: here its file is noexec.
func startConfine() (pid int, err error) {
	return syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", exeFD), []string{ConfineName}, &syscall.ProcAttr{
		Env:   []string{},
		Files: []uintptr{0, 1, 2, orderFD, exeFD, errorFD},
	})
}

// Confine puts Landlock and the filter on itself and becomes the command.
func Confine() int {
	o, err := readOrder()
	if err != nil {
		fmt.Fprintln(os.Stderr, "jail: error:", err)
		return 125
	}
	c, err := prepare(o.Layout.Adapt(o.Plan), o.Env)
	if err != nil {
		return report(err)
	}
	return report(c.exec(o.Path, o.Argv))
}

// takeSignals begins to take what is to be passed on. Neither the parent nor init
// may end of it, so the terminal's are taken too, and dropped by forward: a
// signal with a handler reaches process 1.
func takeSignals() chan os.Signal {
	c := make(chan os.Signal, 64)
	signal.Notify(c, passed()...)
	return c
}

// forward sends on what is not the terminal's.
func forward(signals <-chan os.Signal, send func(os.Signal)) {
	for s := range signals {
		if s != syscall.SIGINT && s != syscall.SIGQUIT {
			send(s)
		}
	}
}

// isStopped tells whether a process is stopped now (proc(5), field 3).
func isStopped(pid int) bool {
	f := statFields(pid)
	return len(f) > 0 && f[0] == "T"
}

// leads tells whether the command has made a process group of its own, as an
// interactive shell does: the terminal's signals then reach it alone.
func leads(command int) bool {
	group, err := unix.Getpgid(command)
	return err == nil && group == command
}

// reap waits for every process of the namespace until the command ends, and
// returns its status: 128+n after signal n.
func reap(command int, tidying *sync.Mutex) int {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 125
		case pid == command && ws.Stopped():
			tidying.Lock() // watch stops and continues everything
			// A stop by the terminal reaches the parent as well.
			if isStopped(command) && (ws.StopSignal() == syscall.SIGSTOP || leads(command)) {
				unix.Write(lineFD, []byte{stopped})
			}
			tidying.Unlock()
		case ws.Stopped():
		case pid == command && ws.Signaled():
			return 128 + int(ws.Signal())
		case pid == command:
			return ws.ExitStatus()
		}
	}
}
