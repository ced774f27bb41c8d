package supervise

import (
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"jail/seccomp"
)

// FuzzCall: whatever registers a call has, it is decoded to the caller's thread,
// and only addresses and flags of the call itself are taken. What is done with
// them asks the kernel, which may refuse an address but must not be asked for more
// than a string holds.
func FuzzCall(f *testing.F) {
	f.Add(int32(unix.SYS_EXECVE), uint32(1), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0))
	f.Add(int32(unix.SYS_EXECVEAT), uint32(1), ^uint64(0), uint64(1)<<63, uint64(4095), uint64(0), uint64(unix.AT_EMPTY_PATH))
	f.Add(int32(unix.SYS_FACCESSAT2), uint32(2), uint64(1)<<32-1, uint64(1), uint64(7), uint64(0x1000), uint64(0))
	f.Add(int32(sysAccess), uint32(2), uint64(5), uint64(1)<<32, uint64(0), uint64(0), uint64(0))
	self := task(unix.Getpid())
	here := []byte("a string\x00" + strings.Repeat("x", 5000) + "\x00")
	f.Fuzz(func(t *testing.T, number int32, pid uint32, a, b, c, d, e uint64) {
		n := seccomp.Notification{ID: a ^ b, PID: pid, Call: number, Args: [6]uint64{a, b, c, d, e}}
		k, got := calls(&n)
		if k == unknown {
			return
		}
		if got.id != n.ID || got.task != task(pid) {
			t.Errorf("%+v became %+v", n, got)
		}
		if got.dir != unix.AT_FDCWD && uint32(got.dir) != uint32(a) {
			t.Errorf("%+v names the directory %d", n, got.dir)
		}
		got.task = self // its memory is what addresses are looked up in
		for _, at := range []uint64{got.at, got.argv, uint64(uintptr(unsafe.Pointer(&here[0]))) + got.at%5000} {
			if s, err := got.task.text(at, unix.PathMax); err == nil && (len(s) > unix.PathMax+256 || strings.Contains(s, "\x00")) {
				t.Errorf("%#x: %d bytes", at, len(s))
			}
			if w := got.task.words(at, 4); len(w) > 4 {
				t.Errorf("%#x: %d words", at, len(w))
			}
		}
		if name := got.name(); name == "" {
			t.Errorf("%+v has no name", got)
		}
	})
}

// FuzzHead: the beginning of a file is told as a script, a program or neither, and
// never panics; an ELF file of another machine or class is none of ours.
func FuzzHead(f *testing.F) {
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01")
	binary.LittleEndian.PutUint16(head[16:], uint16(elf.ET_DYN))
	binary.LittleEndian.PutUint16(head[18:], uint16(machine()))
	f.Add(head)
	f.Add([]byte("#!/bin/sh"))
	f.Fuzz(func(t *testing.T, head []byte) {
		program, shared := isProgram(head), isShared(head)
		switch {
		case program && isScript(head):
			t.Error("a script and a program")
		case shared && !program:
			t.Error("a library that is no ELF file of the kind that is executed")
		case program && (len(head) < 64 || head[elf.EI_CLASS] != byte(elf.ELFCLASS64)):
			t.Error("not of this machine")
		}
	})
}
