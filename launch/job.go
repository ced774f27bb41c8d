package launch

import (
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// What the parent and process 1 tell each other over their line, besides the
// numbers of signals that are to be passed on. When one of them ends, the other
// reads the end.
const (
	ordered   = 'o' // the parent: the order is written
	stopped   = 's' // process 1: the command has stopped
	continued = 'c' // the parent: somebody has continued us
	inFront   = 'f' // the parent: likewise, and the terminal is ours (fg)
)

// ignoreStops keeps the terminal's stops from the parent: whether it stops is the
// command's decision. An editor takes Ctrl-Z as a key and stops itself later, which
// nobody outside would see; and a parent that is stopped before the command can't
// serve or trace it to its stop.
func ignoreStops() { signal.Ignore(syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU) }

// stopAlong stops the parent when the command has stopped, so that the shell that
// waits for the parent sees it, and continues the command when the shell continues
// the parent.
func stopAlong(line *os.File) {
	// kill(2) may return before the stop is felt: only SIGCONT says that it is over.
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGCONT)
	if !isJob() {
		stayAwake(line, again)
		return
	}
	buf := make([]byte, 1)
	for {
		if n, err := line.Read(buf); n != 1 || err != nil {
			return
		}
		if buf[0] != stopped {
			continue
		}
		select {
		case <-again: // an old one
		default:
		}
		unix.Kill(unix.Getpid(), unix.SIGSTOP)
		<-again
		goOn(line)
	}
}

// stayAwake is stopAlong where nobody would continue the parent: it goes on, as the
// shell does that has started a command without being interactive. What else runs in
// the jail may continue the command, and executes programs for that.
func stayAwake(line *os.File, again <-chan os.Signal) {
	var still atomic.Bool // as far as we know
	go func() {
		for range again {
			if still.Swap(false) {
				goOn(line)
			}
		}
	}()
	buf := make([]byte, 1)
	for {
		if n, err := line.Read(buf); n != 1 || err != nil {
			return
		}
		if buf[0] == stopped {
			still.Store(true)
		}
	}
}

// isJob tells whether we are a job of an interactive shell: our parent is in another
// process group of a session that has a terminal. Others do not look for stops.
func isJob() bool {
	tty, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Close(tty)
	parent := unix.Getppid()
	if parent == 0 { // outside of our pid namespace
		return false
	}
	session, err := unix.Getsid(parent)
	own, err2 := unix.Getsid(0)
	group, err3 := unix.Getpgid(parent)
	return errors.Join(err, err2, err3) == nil && session == own && group != unix.Getpgrp()
}

// goOn has process 1 continue the command.
func goOn(line *os.File) {
	if front := foreground(); front.tty >= 0 {
		unix.Close(front.tty)
		line.Write([]byte{inFront})
	} else {
		line.Write([]byte{continued})
	}
}

// listen is process 1's side: it passes signals on, continues the command, and
// ends, and with it everything in the namespace, when the parent has gone. The
// parent may be gone before the kernel was told to send a signal of that.
func (i *process1) listen() {
	line := os.NewFile(lineFD, "line")
	buf := make([]byte, 1)
	for {
		n, err := line.Read(buf)
		switch {
		case n != 1 || err != nil:
			i.keepRunning = false
			unix.Kill(-1, unix.SIGKILL) // reap sees the command's end, and ends init
			return
		case buf[0] == inFront:
			bringForward(i.command)
			continueGroup(i.command)
		case buf[0] == continued:
			continueGroup(i.command)
		default:
			go i.passOn(syscall.Signal(buf[0]))
		}
	}
}

// bringForward gives the terminal to a command that leads a process group of its
// own, as an interactive shell does. The shell outside has given it to ours, which
// such a shell can't name from its pid namespace: it would not take it back, read
// nothing more from its terminal, and end.
func bringForward(command int) {
	tty, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(tty)
	if leads(command) {
		signal.Ignore(syscall.SIGTTOU) // from the background the call would stop us
		unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, command)
	}
}

// terminal is the foreground process group that the terminal had at the start,
// if it was ours.
type terminal struct {
	tty   int
	group int
}

// foreground remembers the terminal's foreground group. An interactive shell
// inside takes it; being in another pid namespace it does not know ours and
// can't give it back.
func foreground() terminal {
	tty, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return terminal{tty: -1}
	}
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		unix.Close(tty)
		return terminal{tty: -1}
	}
	return terminal{tty: tty, group: group}
}

// restore puts the group back that was in the foreground, if the one that is there
// now has ended, with the jail. One that is alive is somebody's outside: of a shell
// that has stopped us (Ctrl-Z) and sent us to the background (bg). Taking the terminal
// from it would end it.
func (t terminal) restore() {
	if t.tty < 0 {
		return
	}
	defer unix.Close(t.tty)
	group, err := unix.IoctlGetInt(t.tty, unix.TIOCGPGRP)
	if err != nil || group == t.group || unix.Kill(-group, 0) != unix.ESRCH {
		return
	}
	signal.Ignore(syscall.SIGTTOU) // from the background the call would stop us
	unix.IoctlSetPointerInt(t.tty, unix.TIOCSPGRP, t.group)
}
