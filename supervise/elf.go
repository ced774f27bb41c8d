package supervise

import (
	"debug/elf"
	"encoding/binary"
	"runtime"
)

// headSize is what the kernel reads to tell what a file is (BINPRM_BUF_SIZE).
const headSize = 256

// isProgram tells whether the kernel would try to execute this as ELF. Another
// machine's program gets the same errno as without jail.
func isProgram(head []byte) bool { return isELF(head, elf.ET_EXEC, elf.ET_DYN) }

// isShared tells whether this may be a shared object.
func isShared(head []byte) bool { return isELF(head, elf.ET_DYN) }

func isELF(head []byte, kinds ...elf.Type) bool {
	if len(head) < 64 || string(head[:4]) != elf.ELFMAG || elf.Class(head[elf.EI_CLASS]) != elf.ELFCLASS64 {
		return false
	}
	if elf.Machine(binary.LittleEndian.Uint16(head[18:])) != machine() {
		return false
	}
	kind := elf.Type(binary.LittleEndian.Uint16(head[16:]))
	for _, k := range kinds {
		if k == kind {
			return true
		}
	}
	return false
}

func machine() elf.Machine {
	if runtime.GOARCH == "arm64" {
		return elf.EM_AARCH64
	}
	return elf.EM_X86_64
}
