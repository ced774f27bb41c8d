package integration_test

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// machineAttacks use the old calls that newer architectures have dropped, and
// the ways to call the kernel that only this one has.
func machineAttacks() []attack {
	return []attack{
		{name: "machine/open", promise: "paths", want: []errno{unix.EACCES}, run: func(w attackWorld) error {
			fd, err := withPath(w.Secret, func(p uintptr) (uintptr, error) { return callValue(unix.SYS_OPEN, p, unix.O_RDONLY, 0) })
			return after(err, func() error { return lootFD(int(fd)) })
		}},
		{name: "machine/creat", promise: "paths", want: []errno{unix.EACCES}, run: func(w attackWorld) error {
			_, err := withPath(w.out("mark"), func(p uintptr) (uintptr, error) { return callValue(unix.SYS_CREAT, p, 0o644) })
			return err
		}},
		setsIDByPath("chmod", unix.SYS_CHMOD, unix.S_ISUID|0o755),
		setsIDByPath("creat", unix.SYS_CREAT, unix.S_ISUID|0o755),
		setsIDByPath("open", unix.SYS_OPEN, unix.O_CREAT|unix.O_WRONLY, unix.S_ISUID|0o755),
		setsIDByPath("mknod", unix.SYS_MKNOD, unix.S_IFREG|unix.S_ISGID|0o755, 0),
		surface("machine/modify_ldt", unix.EPERM, func(attackWorld) error {
			entry := make([]byte, 16)
			return call(unix.SYS_MODIFY_LDT, 0, uintptr(unsafe.Pointer(&entry[0])), 16)
		}),
		probe("machine/uselib-number", unix.EPERM, unix.ENOSYS, unix.SYS_USELIB, bad),
		// The x32 calls are the same numbers with a bit set.
		unlessAbsent(surface("machine/x32-getpid", unix.ENOSYS, func(attackWorld) error { return call(0x40000000 | unix.SYS_GETPID) }), unix.ENOSYS),
		unlessAbsent(surface("machine/x32-memfd_create", unix.ENOSYS, func(attackWorld) error {
			name := new(byte)
			return call(0x40000000|unix.SYS_MEMFD_CREATE, uintptr(unsafe.Pointer(name)), 0)
		}), unix.ENOSYS),
		// And 32-bit calls are open to 64-bit programs.
		unlessAbsent(surface("machine/int80-getpid", unix.ENOSYS, func(w attackWorld) error { return exitErrno(filepath.Join(w.Tools, "int80-getpid")) }), unix.ENOSYS, unix.EFAULT),
		unlessAbsent(surface("machine/int80-unshare", unix.ENOSYS, func(w attackWorld) error { return exitErrno(filepath.Join(w.Tools, "int80-unshare")) }), unix.ENOSYS, unix.EFAULT),
		// A program of our own making, with nothing of the system in it.
		{name: "machine/written-program", promise: "paths", want: []errno{unix.EACCES}, run: func(w attackWorld) error {
			return after(writeProgram(w.in("x"), tinyPrograms()["exit"]), func() error { return execute(w.in("x")) })
		}},
	}
}

// writeProgram makes an executable file.
func writeProgram(path string, b []byte) error { return os.WriteFile(path, b, 0o755) }

func withPath(path string, next func(uintptr) (uintptr, error)) (uintptr, error) {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return 0, err
	}
	return pinned(next, uintptr(unsafe.Pointer(p)))
}

// pinned keeps the memory behind an address in place while next runs.
//
//go:uintptrescapes
func pinned(next func(uintptr) (uintptr, error), p uintptr) (uintptr, error) { return next(p) }

// setsIDByPath calls with a path in the project and more arguments.
func setsIDByPath(name string, nr uintptr, args ...uintptr) attack {
	return surface("machine/set-id-"+name, unix.EPERM, func(w attackWorld) error {
		path := w.in("x")
		if nr == unix.SYS_CHMOD {
			path = w.in("README.md")
		}
		_, err := withPath(path, func(p uintptr) (uintptr, error) { return callValue(nr, append([]uintptr{p}, args...)...) })
		return err
	})
}

// exitErrno runs a program whose exit status is an errno.
func exitErrno(path string) error {
	err := exec.Command(path).Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return errno(exit.ExitCode())
	}
	return err
}

// tinyPrograms are ELF files of some hundred bytes.
func tinyPrograms() map[string][]byte {
	const getpid32, unshare32 = 20, 310
	return map[string][]byte{
		"exit":          elf(0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05), // exit(0)
		"int80-getpid":  elf(int80(getpid32)...),
		"int80-unshare": elf(int80(unshare32)...),
	}
}

// int80 makes a 32-bit call with a zero and exits with its errno.
func int80(nr uint16) []byte {
	return []byte{
		0x31, 0xdb, // xor ebx, ebx
		0xb8, byte(nr), byte(nr >> 8), 0, 0, // mov eax, nr
		0xcd, 0x80, // int 0x80
		0x31, 0xff, // xor edi, edi
		0x85, 0xc0, // test eax, eax
		0x79, 0x04, // jns over the next two
		0x89, 0xc7, // mov edi, eax
		0xf7, 0xdf, // neg edi
		0xb8, 60, 0, 0, 0, // mov eax, exit
		0x0f, 0x05, // syscall
	}
}

// elf puts code into the smallest executable file: a header and one segment.
func elf(code ...byte) []byte {
	const base, headers = 0x400000, 64 + 56
	size := uint64(headers + len(code))
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	put := func(v any) {
		var err error
		if b, err = binary.Append(b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	put([]uint16{2, 62}) // executable, x86-64
	put(uint32(1))
	put([]uint64{base + headers, 64, 0}) // entry, program headers, no sections
	put(uint32(0))
	put([]uint16{64, 56, 1, 0, 0, 0})
	put([]uint32{1, 5}) // load, readable and executable
	put([]uint64{0, base, base, size, size, 0x1000})
	return append(b, code...)
}
