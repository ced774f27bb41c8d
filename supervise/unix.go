package supervise

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// connectUnix connects a socket of its own first and looks who answers; a process
// outside sees somebody come and go again without a word. Only
// then it takes the place of the caller's, which never was connected to
// anything else.
//
// A socket that is bound to a name of its own is refused: another one can't have
// that name.
func (s *server) connectUnix(id uint64, t task, number, socket int, address []byte) unix.Errno {
	if family(address) != unix.AF_UNIX || len(address) == 2 {
		return unix.EINVAL
	}
	if _, err := unix.Getpeername(socket); err == nil {
		return unix.EISCONN
	}
	if own, err := unix.Getsockname(socket); err != nil || own.(*unix.SockaddrUnix).Name != unnamed {
		return unix.EACCES
	}
	fresh, flags, err := like(socket)
	if err != nil {
		return errno(err)
	}
	defer unix.Close(fresh)
	wait := func() bool { return s.listener.Valid(id) }
	if flags&unix.O_NONBLOCK != 0 {
		wait = nil
	}
	allowed, e := s.reach(t, fresh, address, wait)
	switch {
	case e != 0:
		return e
	case !allowed && !listensInside(t, fresh):
		return unix.EACCES
	}
	if _, err := unix.FcntlInt(uintptr(fresh), unix.F_SETFL, flags); err != nil {
		return errno(err)
	}
	descriptor, _, err := t.descriptor(number)
	if err != nil {
		return unix.EBADF
	}
	if err := s.listener.GiveAs(id, fresh, number, descriptor&unix.O_CLOEXEC != 0); err != nil {
		return errno(err)
	}
	return 0
}

// unnamed is what package unix makes of a socket without a name.
const unnamed = "@"

// reach connects, and tells whether a rule names the path. Nil for wait means that
// the caller does not wait for a listener that is busy.
func (s *server) reach(t task, fresh int, address []byte, wait func() bool) (allowed bool, e unix.Errno) {
	name := address[2:]
	if name[0] == 0 {
		return false, connectWhole(fresh, address, wait) // no path: one name space for the host
	}
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	f, err := s.lookup(t, unix.AT_FDCWD, string(name), 0)
	if err != nil {
		return false, errno(err)
	}
	defer f.close()
	if f.stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return false, unix.ECONNREFUSED
	}
	path, err := f.path()
	if err != nil {
		return false, unix.EACCES
	}
	// Through the handle: it is this very socket, wherever it is by now.
	return slices.Contains(s.Sockets.Allowed, path), connectWhole(fresh, append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), f.self()...), wait)
}

// connectWhole connects a socket that does not block. A listener whose queue is
// full is asked again for as long as the caller waits: in a connect that blocks, a
// daemon that accepts nobody would hold a thread for each caller that is killed,
// and the end of the jail for good.
func connectWhole(fresh int, address []byte, wait func() bool) unix.Errno {
	limit, err := unix.GetsockoptTimeval(fresh, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil {
		return errno(err)
	}
	start, pause := time.Now(), time.Millisecond
	for {
		e := connectRaw(fresh, address)
		late := *limit != (unix.Timeval{}) && time.Since(start) >= time.Duration(limit.Nano())
		if e != unix.EAGAIN || wait == nil || late || !wait() {
			return e
		}
		time.Sleep(pause)
		pause = min(2*pause, maxPause)
	}
}

// maxPause is how long a caller waits at most after its listener has room.
const maxPause = 20 * time.Millisecond

// like makes an unconnected socket with the settings of another, but that it does
// not block yet; flags are the other's.
func like(socket int) (fresh, flags int, err error) {
	kind, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return -1, 0, err
	}
	if flags, err = unix.FcntlInt(uintptr(socket), unix.F_GETFL, 0); err != nil {
		return -1, 0, err
	}
	if fresh, err = unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, 0, err
	}
	copyOptions(socket, fresh)
	return fresh, flags, nil
}

// copyOptions is best effort: none of these decides who may talk to whom.
func copyOptions(from, to int) {
	for _, option := range []int{unix.SO_PASSCRED, unix.SO_PASSSEC} {
		if v, err := unix.GetsockoptInt(from, unix.SOL_SOCKET, option); err == nil && v != 0 {
			_ = unix.SetsockoptInt(to, unix.SOL_SOCKET, option, v)
		}
	}
	for _, option := range []int{unix.SO_SNDBUF, unix.SO_RCVBUF} {
		// What is read is twice what was set.
		have, err := unix.GetsockoptInt(from, unix.SOL_SOCKET, option)
		if fresh, e := unix.GetsockoptInt(to, unix.SOL_SOCKET, option); err == nil && e == nil && have != fresh {
			_ = unix.SetsockoptInt(to, unix.SOL_SOCKET, option, have/2)
		}
	}
	for _, option := range []int{unix.SO_SNDTIMEO, unix.SO_RCVTIMEO} {
		if v, err := unix.GetsockoptTimeval(from, unix.SOL_SOCKET, option); err == nil && *v != (unix.Timeval{}) {
			_ = unix.SetsockoptTimeval(to, unix.SOL_SOCKET, option, v)
		}
	}
}

// listensInside tells whether a process of the caller's pid namespace listens at
// the other end. A jail makes no namespaces, so that is the jail. The handle is
// still good afterwards, so the number was its process's all the time.
func listensInside(t task, socket int) bool {
	peer, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if err != nil {
		return false // before Linux 6.5, or it has ended
	}
	defer unix.Close(peer)
	pid, err := pidOf(peer)
	if err != nil {
		return false
	}
	var theirs, ours unix.Stat_t
	if unix.Stat(task(pid).proc("ns/pid"), &theirs) != nil || unix.Stat(t.proc("ns/pid"), &ours) != nil {
		return false
	}
	alive := unix.PidfdSendSignal(peer, 0, nil, 0) == nil
	return alive && theirs.Ino == ours.Ino && theirs.Dev == ours.Dev
}

// ProbePeers tells whether the kernel says who listens on a unix socket. Without
// that nobody is taken for somebody inside.
func ProbePeers() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	peer, err := unix.GetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if err == nil {
		unix.Close(peer)
	}
	return err
}

// pidOf reads the number behind a process's descriptor.
func pidOf(pidfd int) (pid int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", pidfd))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "\nPid:")
	if _, err = fmt.Sscan(rest, &pid); err != nil || pid <= 0 {
		return 0, unix.ESRCH
	}
	return pid, nil
}
