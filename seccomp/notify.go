package seccomp

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Notification is a system call that waits for an answer (struct seccomp_notif).
type Notification struct {
	ID    uint64
	PID   uint32 // the thread, as this process numbers it
	Flags uint32
	Call  int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

// Listener answers notifications. Every answer fails with ENOENT when
// the call waits no more: its thread was killed, or a signal took it away.
type Listener struct {
	file *os.File // or the collector would close it
	fd   int
}

// NewListener takes over the descriptor that loading a filter has returned.
// Calls are then answered on the CPU they come from, where the kernel can
// (Linux 6.6): that halves a round trip.
func NewListener(f *os.File) Listener {
	l := Listener{file: f, fd: int(f.Fd())}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return l
}

// Close lets every waiting and every later call fail with ENOSYS.
func (l Listener) Close() error { return l.file.Close() }

// FD is the descriptor from which notifications are received: the kernel fills in a
// [Notification].
func (l Listener) FD() int { return l.fd }

// Valid tells whether the call still waits. What was read under the thread's
// number before may be another's if it does not.
func (l Listener) Valid(id uint64) bool {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == nil
}

type response struct {
	id    uint64
	val   int64
	error int32
	flags uint32
}

// Continue lets the kernel decide, on arguments that may have changed since:
// it is never a permission.
func (l Listener) Continue(id uint64) error {
	return l.send(response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

// Refuse answers with an errno; 0 is success.
func (l Listener) Refuse(id uint64, e unix.Errno) error {
	return l.send(response{id: id, error: -int32(e)})
}

// restartNoIntr is the kernel's ERESTARTNOINTR: the call is made anew, after
// whatever signal handlers there are to run, and is never EINTR.
const restartNoIntr = 513

// Restart has the call made once more, with the registers of that moment.
func (l Listener) Restart(id uint64) error {
	return l.send(response{id: id, error: -restartNoIntr})
}

func (l Listener) send(r response) error {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

type addition struct {
	id       uint64
	flags    uint32
	src, dst uint32
	dstFlags uint32
}

// Give puts a copy of a descriptor into the caller, close-on-exec, and returns
// its number there. It is not opened for writing if fd is not.
func (l Listener) Give(id uint64, fd int) (int, error) {
	return l.add(addition{id: id, src: uint32(fd), dstFlags: unix.O_CLOEXEC})
}

// GiveAs puts a copy of a descriptor in the place of the caller's own.
func (l Listener) GiveAs(id uint64, fd, number int, closeOnExec bool) error {
	a := addition{id: id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, src: uint32(fd), dst: uint32(number)}
	if closeOnExec {
		a.dstFlags = unix.O_CLOEXEC
	}
	_, err := l.add(a)
	return err
}

// AnswerWith gives a descriptor, close-on-exec, and answers with its number.
func (l Listener) AnswerWith(id uint64, fd int) error {
	_, err := l.add(addition{id: id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, src: uint32(fd), dstFlags: unix.O_CLOEXEC})
	return err
}

func (l Listener) add(a addition) (int, error) {
	n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_ADDFD, uintptr(unsafe.Pointer(&a)))
	if e != 0 {
		return -1, e
	}
	return int(n), nil
}

func (l Listener) ioctl(request uintptr, p unsafe.Pointer) error {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), request, uintptr(p))
	if e != 0 {
		return e
	}
	return nil
}
