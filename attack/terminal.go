package attack

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// terminalAttacks type into a terminal as if it were the person before it. Each
// makes a terminal of its own and has it as controlling terminal, as a program
// that a shell starts has the shell's.
func terminalAttacks() []Attack {
	// Linux 6.2 may refuse all injection itself, with EIO.
	injects := func(name string, bare []Errno, request uintptr) Attack {
		a := surface("terminal/"+name, unix.EPERM, func(World) error { return onTerminal(request) })
		a.Bare = bare
		return a
	}
	const tioclinux = 0x541c
	high := uintptr(1) << 32 // the kernel does not look at it; a careless filter does
	injected, notThere := []Errno{0, unix.EIO}, []Errno{unix.ENOTTY}
	return []Attack{
		injects("tiocsti", injected, unix.TIOCSTI),
		injects("tiocsti-high-bits", injected, high|unix.TIOCSTI),
		injects("tiocsti-all-high-bits", injected, ^(high-1)|unix.TIOCSTI),
		injects("tioclinux", notThere, tioclinux),
		injects("tioclinux-high-bits", notThere, high|tioclinux),
		injects("line-discipline", []Errno{0}, unix.TIOCSETD),
	}
}

// onTerminal gives a new controlling terminal a request with a zero, which is a
// character to type or the number of the ordinary line discipline.
func onTerminal(request uintptr) error {
	// It stays open to the end: closing it would hang up, and end the attacker.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("no terminal: %v", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return fmt.Errorf("no terminal: %v", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return fmt.Errorf("no terminal: %v", err)
	}
	if _, err := unix.Setsid(); err != nil {
		return fmt.Errorf("no session: %v", err)
	}
	slave, err := unix.Open(fmt.Sprintf("/dev/pts/%d", number), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("no terminal: %v", err)
	}
	zero := new(uint64)
	return call(unix.SYS_IOCTL, uintptr(slave), request, uintptr(unsafe.Pointer(zero)))
}
