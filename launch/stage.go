package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"jail/landlock"
	"jail/mounts"
)

// StageName is the name under which jail calls itself. main recognises it; with
// no order on descriptor 3 it does nothing.
const StageName = "jail: init"

// Stage is process 1 of the jail's namespaces. It builds the file system view,
// starts the command in a child that is confined before it executes, reaps, and
// ends everything when the command ends: the kernel kills what is left with
// process 1.
func Stage() int {
	// What comes while it waits is for the command too.
	signals := takeSignals()
	o, err := readOrder()
	if errors.Is(err, errNoOrder) {
		return 125
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "jail: error:", err)
		return 125
	}
	if err := o.Layout.Enter(); err != nil {
		// AppArmor gives the namespace, but no rights in it.
		return refuse(refusal{Problem: problemOf(err), NoMounts: errors.Is(err, unix.EPERM)})
	}
	// Until now the working directory was on a mount that is read-only now.
	if err := unix.Chdir(o.Cwd); err != nil {
		return refuse(refusal{Problem: problemOf(fmt.Errorf("changing to %q: %w", o.Cwd, err))})
	}
	// The command itself may have to be sealed before it starts.
	go serveAttach(&o.Layout)
	pid, err := o.start()
	if err != nil {
		return refuse(refusal{Problem: problemOf(err)})
	}
	unix.Close(errorFD)
	debug.SetGCPercent(100) // see main: this may go on for days
	i := process1{command: pid, verbose: o.Verbose, keepRunning: o.KeepRunning, seen: seen{at: map[os.Signal]time.Time{}}}
	go i.seen.note(signals)
	go i.listen()
	go i.watch(&o.Layout)
	return i.reap()
}

// start opens what Landlock's rules are about, which may be found only in this
// view, and starts the command.
func (o *order) start() (pid int, err error) {
	if o.Steps.Ruleset, err = o.Ruleset.FD(); err != nil {
		return 0, err
	}
	defer unix.Close(o.Steps.Ruleset)
	if o.Artifacts != nil {
		if err := handOver(*o.Artifacts); err != nil {
			return 0, err
		}
		o.Steps.Listener = handFD
	}
	if pid, err = o.Steps.Start(); err != nil {
		return 0, startProblem(o.Steps, err)
	}
	return pid, nil
}

// handOver gives the parent the ruleset of artifacts.
func handOver(rs landlock.Ruleset) error {
	fd, err := rs.FD()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendmsg(handFD, []byte{0}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("handing over the ruleset of artifacts: %w", err)
	}
	return nil
}

// process1 is what init knows while the command runs.
type process1 struct {
	command     int
	verbose     bool
	keepRunning bool
	ended       atomic.Bool // the command has, and its number may be another's
	seen        seen        // signals that came to init itself
	tidying     sync.Mutex  // the jail is stopped, but not by its user
}

// watch puts carve-outs back that the host has dropped by replacing what they
// covered. The jail is stopped meanwhile; what it did between the host's rename
// and the kernel's notice can't be undone, so it is said.
func (i *process1) watch(l *mounts.Layout) {
	warned := map[string]bool{}
	for range l.Dropped() {
		i.tidying.Lock()
		already := stopAll()
		for _, c := range l.Missing() {
			if err := putBack(l, c); err != nil && !warned[c.Path] {
				warned[c.Path] = true
				fmt.Fprintf(os.Stderr, "jail: warning: %q was replaced from outside and is not %s any more: %v\n", c.Path, c.Kind, err)
			} else if err == nil {
				fmt.Fprintf(os.Stderr, "jail: note: %q was replaced from outside; it is %s again\n", c.Path, c.Kind)
			}
		}
		continueAll(already)
		i.tidying.Unlock()
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

// reap waits for every process of the namespace until the command ends, and
// returns its status: 128+n after signal n.
func (i *process1) reap() (status int) {
	status = -1 // it runs
	for {
		pid, ws, err := i.wait()
		switch {
		case err == syscall.EINTR, err == nil && pid == 0:
			continue
		case err != nil && status >= 0: // the last process of all has ended
			return status
		case err != nil:
			return 125
		case ws.Stopped(), pid != i.command:
			continue
		}
		i.ended.Store(true)
		if status = ws.ExitStatus(); ws.Signaled() {
			status = 128 + int(ws.Signal())
		}
		if !i.keepRunning {
			i.tellLeft()
			return status
		}
	}
}

// wait waits for a process that has ended or stopped, and tells the parent that the
// command has stopped. First it only looks: watch stops and continues everything,
// and of what was continued again wait4(2) knows nothing (0).
func (i *process1) wait() (pid int, ws syscall.WaitStatus, err error) {
	if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		return 0, 0, err
	}
	i.tidying.Lock()
	defer i.tidying.Unlock()
	pid, err = syscall.Wait4(-1, &ws, syscall.WUNTRACED|syscall.WNOHANG, nil)
	if err == nil && pid == i.command && ws.Stopped() {
		unix.Write(lineFD, []byte{stopped})
	}
	return pid, ws, err
}

// tellLeft says with -v how many processes end with the command.
func (i *process1) tellLeft() {
	if !i.verbose {
		return
	}
	left := 0
	for pid := range processes() {
		if state(pid) != "Z" {
			left++
		}
	}
	if left > 0 {
		fmt.Fprintf(os.Stderr, "jail: %d left running, ended now (--keep-running waits for them)\n", left)
	}
}
