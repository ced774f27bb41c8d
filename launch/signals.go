package launch

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Parent, init and command share a process group. What is sent to the group (by
// the terminal, by kill -TERM -PGID, by a harness that ends a tool call) reaches
// the command by itself; what is sent to the parent alone has to be passed on,
// once. The parent can't tell the one from the other, but init can: it has got
// what the group got.

// takeSignals begins to take what is to be passed on or dropped. Neither the
// parent nor init may end of it. A signal with a handler reaches process 1.
func takeSignals() chan os.Signal {
	c := make(chan os.Signal, 64)
	signal.Notify(c, passed()...)
	return c
}

// passed are the signals that are taken. One that is ignored (nohup) stays
// ignored, here and by the command.
func passed() []os.Signal {
	var out []os.Signal
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) {
			out = append(out, s)
		}
	}
	return out
}

// passSignals writes to init what the parent gets, but for what only a terminal
// sends.
func passSignals(signals <-chan os.Signal, line *os.File) {
	for s := range signals {
		if s != syscall.SIGINT && s != syscall.SIGQUIT {
			line.Write([]byte{byte(s.(syscall.Signal))})
		}
	}
}

// groupDelay is how long init's own copy of a signal may take to be seen after
// the parent has told of it. The kernel marks all of a group at once; what remains
// is the time until init runs.
const groupDelay = 20 * time.Millisecond

// seen remembers when init got which signal itself.
type seen struct {
	sync.Mutex
	at map[os.Signal]time.Time
}

// note takes init's own signals.
func (s *seen) note(direct <-chan os.Signal) {
	for sig := range direct {
		s.Lock()
		s.at[sig] = time.Now()
		s.Unlock()
	}
}

// since tells whether init has got a signal after t.
func (s *seen) since(t time.Time, sig os.Signal) bool {
	s.Lock()
	defer s.Unlock()
	return s.at[sig].After(t)
}

// passOn sends the command what the parent has got, unless the whole group got it
// and the command is in that. When the command has ended, what it left running
// (--keep-running) gets it: else nothing but SIGKILL would end that. One of these that
// is stopped has to be continued to end of it.
func (i *process1) passOn(s syscall.Signal) {
	if i.ended.Load() {
		syscall.Kill(-1, s)
		if s == syscall.SIGTERM || s == syscall.SIGHUP {
			syscall.Kill(-1, syscall.SIGCONT)
		}
		return
	}
	told := time.Now()
	for time.Since(told) < groupDelay && !leads(i.command) {
		if i.seen.since(told.Add(-groupDelay), s) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	syscall.Kill(i.command, s)
}

// continueGroup continues the command's process group. One that is still the
// parent's has been continued with it.
func continueGroup(command int) {
	if group, err := unix.Getpgid(command); err == nil && group != 0 && group != unix.Getpgrp() {
		unix.Kill(-group, unix.SIGCONT)
	}
	unix.Kill(command, unix.SIGCONT)
}
