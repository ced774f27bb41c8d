package supervise

import (
	"encoding/binary"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"jail/seccomp"
)

// maxAddress is the longest address that connect takes (struct sockaddr_storage).
const maxAddress = 128

// connect makes every connection on behalf. None is left to the kernel, not even
// on an internet socket: while it waits another thread can put a unix socket in
// the descriptor's place, and another address behind the pointer.
func (s *server) connect(n seccomp.Notification) {
	t, number := task(n.PID), int(int32(n.Args[0]))
	length := int32(n.Args[2])
	if length < 0 || length > maxAddress {
		s.refuse(n.ID, unix.EINVAL)
		return
	}
	address := make([]byte, max(length, 1))
	k, err := t.read(address, n.Args[1])
	if length > 0 && (err != nil || k != len(address)) {
		s.refuse(n.ID, unix.EFAULT)
		return
	}
	s.work.Go(func() { s.connectTo(n.ID, t, number, address[:length]) })
}

// connectTo connects a task's socket and answers.
func (s *server) connectTo(id uint64, t task, number int, address []byte) {
	socket, err := t.socket(number)
	if err != nil {
		s.refuse(id, errno(err))
		return
	}
	domain, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	rulesets := s.portRules(t)
	switch {
	case !s.listener.Valid(id): // the number may be another's: of somebody outside
	case err != nil:
		s.refuse(id, errno(err)) // ENOTSOCK
	case domain == unix.AF_UNIX:
		s.refuse(id, s.connectUnix(id, t, number, socket, address))
	default:
		go s.connectPort(id, socket, address, rulesets) // as long as it takes
		return
	}
	unix.Close(socket)
}

// socket is the caller's own, not a copy: what is done to it is done there. A thread
// may have descriptors of its own (CLONE_FILES). Before Linux 6.9 there are only
// those of its process to be had: then a thread that does has another socket of the
// process connected, or none, by the same rules.
func (t task) socket(number int) (int, error) {
	process, err := unix.PidfdOpen(int(t), unix.PIDFD_THREAD)
	if err == unix.EINVAL {
		var leader task
		if leader, err = t.leader(); err == nil {
			process, err = unix.PidfdOpen(int(leader), 0)
		}
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(process)
	return unix.PidfdGetfd(process, number, 0)
}

// portRules are the rules for ports of a caller, those of the artifact domain too
// where it is in it.
func (s *server) portRules(t task) []*os.File {
	var rulesets []*os.File
	if s.Sockets.Ports != nil {
		rulesets = append(rulesets, s.Sockets.Ports)
	}
	if s.Domain.Ruleset != nil && s.confined(t) {
		rulesets = append(rulesets, s.Domain.Ruleset)
	}
	return rulesets
}

// connectPort connects the caller's socket from here. The rules for ports are put
// on the thread that does it: the kernel holds them, as it does for the jail. The
// thread ends with the goroutine, for it is not unlocked.
//
// A blocking connect is left by fatal signals only, and goes on here when its
// caller is killed: until it times out it keeps a thread.
func (s *server) connectPort(id uint64, socket int, address []byte, rulesets []*os.File) {
	defer unix.Close(socket)
	s.connects <- struct{}{}
	defer func() { <-s.connects }()
	if !s.listener.Valid(id) {
		return
	}
	for _, r := range rulesets {
		runtime.LockOSThread()
		if err := restrict(int(r.Fd())); err != nil {
			s.refuse(id, errno(err))
			return
		}
	}
	e := connectRaw(socket, address)
	if e == unix.EINTR {
		e = finishConnect(socket)
	}
	s.refuse(id, e)
}

func restrict(ruleset int) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); e != 0 {
		return e
	}
	return nil
}

// errno is what a caller is told of an error of a system call made for it.
func errno(err error) unix.Errno {
	if e, ok := err.(unix.Errno); ok {
		return e
	}
	return unix.EACCES
}

// family is AF_UNSPEC for an address that is too short to have one.
func family(address []byte) int {
	if len(address) < 2 {
		return unix.AF_UNSPEC
	}
	return int(binary.NativeEndian.Uint16(address))
}
