package attack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// machineAttacks use the old calls that newer architectures have dropped, and
// the ways to call the kernel that only this one has.
func machineAttacks() []Attack {
	return []Attack{
		{Name: "machine/open", Promise: "paths", Want: []Errno{unix.EACCES}, run: func(w World) error {
			fd, err := withPath(w.Secret, func(p uintptr) (uintptr, error) { return callValue(unix.SYS_OPEN, p, unix.O_RDONLY, 0) })
			return after(err, func() error { return lootFD(int(fd)) })
		}},
		{Name: "machine/creat", Promise: "paths", Want: []Errno{unix.EACCES}, Mounts: []Errno{unix.EROFS, unix.ENOENT}, run: func(w World) error {
			_, err := withPath(w.out("mark"), func(p uintptr) (uintptr, error) { return callValue(unix.SYS_CREAT, p, 0o644) })
			return err
		}},
		setsIDByPath("chmod", unix.SYS_CHMOD, unix.S_ISUID|0o755),
		setsIDByPath("creat", unix.SYS_CREAT, unix.S_ISUID|0o755),
		setsIDByPath("open", unix.SYS_OPEN, unix.O_CREAT|unix.O_WRONLY, unix.S_ISUID|0o755),
		setsIDByPath("mknod", unix.SYS_MKNOD, unix.S_IFREG|unix.S_ISGID|0o755, 0),
		surface("machine/modify_ldt", unix.EPERM, func(World) error {
			entry := make([]byte, 16)
			return call(unix.SYS_MODIFY_LDT, 0, uintptr(unsafe.Pointer(&entry[0])), 16)
		}),
		probe("machine/uselib-number", unix.EPERM, unix.ENOSYS, unix.SYS_USELIB, bad),
		// The x32 calls are the same numbers with a bit set.
		unlessAbsent(surface("machine/x32-getpid", unix.ENOSYS, func(World) error { return call(0x40000000 | unix.SYS_GETPID) }), unix.ENOSYS),
		unlessAbsent(surface("machine/x32-memfd_create", unix.ENOSYS, func(World) error {
			name := new(byte)
			return call(0x40000000|unix.SYS_MEMFD_CREATE, uintptr(unsafe.Pointer(name)), 0)
		}), unix.ENOSYS),
		// And 32-bit calls are open to 64-bit programs.
		unlessAbsent(surface("machine/int80-getpid", unix.ENOSYS, func(w World) error { return execute(filepath.Join(w.Tools, "int80-getpid")) }), unix.ENOSYS, unix.EFAULT),
		unlessAbsent(surface("machine/int80-unshare", unix.ENOSYS, func(w World) error { return execute(filepath.Join(w.Tools, "int80-unshare")) }), unix.ENOSYS, unix.EFAULT),
		// A program of our own making, with nothing of the system in it.
		{Name: "machine/written-program", Promise: "paths", Want: []Errno{unix.EACCES}, Mounts: []Errno{Sealed}, run: executeTiny},
	}
}

// executeTiny runs a program that asks nothing; whether it was the written file
// tells what process it is meanwhile.
func executeTiny(w World) error {
	if err := os.WriteFile(w.in("x"), tinyPrograms()["pause"], 0o755); err != nil {
		return fmt.Errorf("no program: %v", err)
	}
	cmd := exec.Command(w.in("x"))
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	return runsAsIs(cmd.Process.Pid, w.in("x"))
}

// runsAsIs waits until a process executes something else than this program, or
// than jail's runner, and tells whether it is the file at path.
func runsAsIs(pid int, path string) error {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var runs, file unix.Stat_t
		if err := unix.Stat(path, &file); err != nil {
			return err
		}
		if unix.Stat(fmt.Sprintf("/proc/%d/exe", pid), &runs) == nil && runs.Dev == file.Dev && runs.Ino == file.Ino {
			return nil
		}
		if runs.Size == file.Size {
			return Sealed
		}
	}
	return errors.New("it does not start")
}

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
func setsIDByPath(name string, nr uintptr, args ...uintptr) Attack {
	return surface("machine/set-id-"+name, unix.EPERM, func(w World) error {
		path := w.in("x")
		if nr == unix.SYS_CHMOD {
			path = w.in("README.md")
		}
		_, err := withPath(path, func(p uintptr) (uintptr, error) { return callValue(nr, append([]uintptr{p}, args...)...) })
		return err
	})
}

// tinyPrograms are ELF files of some hundred bytes.
func tinyPrograms() map[string][]byte {
	const getpid32, unshare32 = 20, 310
	return map[string][]byte{
		"pause":         elf(0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7), // pause(), again
		"int80-getpid":  elf(int80(getpid32)...),
		"int80-unshare": elf(int80(unshare32)...),
	}
}

// int80 makes a 32-bit call with a zero and exits with its Errno.
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
