package supervise

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// connectRaw connects to an address as the caller wrote it: the kernel judges
// what it means.
func connectRaw(socket int, address []byte) unix.Errno {
	b := append(slices.Clone(address), 0) // never empty
	_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(socket), uintptr(unsafe.Pointer(&b[0])), uintptr(len(address)))
	return e
}

// finishConnect waits for a connection that is under way: after a signal of ours
// the kernel goes on with it, and asking again is EALREADY.
func finishConnect(socket int) unix.Errno {
	poll := []unix.PollFd{{Fd: int32(socket), Events: unix.POLLOUT}}
	for {
		if _, err := unix.Poll(poll, -1); err == unix.EINTR {
			continue
		} else if err != nil {
			return errno(err)
		}
		e, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_ERROR)
		if err != nil {
			return errno(err)
		}
		return unix.Errno(e)
	}
}
