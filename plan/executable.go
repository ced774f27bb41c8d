package plan

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// program is what the kernel makes of a file that is executed.
type program struct {
	interpreter string // of "#!" or of an ELF file (PT_INTERP); "" if it needs none
	argument    string // what follows on the "#!" line
	script      bool
	known       bool // a script or an ELF file
}

// inspect reads the beginning of a file as execve(2) does.
func inspect(path string) program {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return program{}
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, _ := io.ReadFull(f, head)
	head = head[:n]
	if rest, ok := bytes.CutPrefix(head, []byte("#!")); ok {
		return parseScript(rest)
	}
	if bytes.HasPrefix(head, []byte("\x7fELF")) {
		return program{known: true, interpreter: elfInterpreter(f, head)}
	}
	return program{}
}

// parseScript reads what stands behind "#!", as fs/binfmt_script.c does: blanks are
// space and tab only, so "#!/bin/sh\r" names a file that ends in a carriage return,
// and all behind the name is one argument.
func parseScript(rest []byte) program {
	const most = 254 // BINPRM_BUF_SIZE, less the two
	line, _, whole := bytes.Cut(rest[:min(len(rest), most)], []byte("\n"))
	cut := !whole && len(rest) >= most
	line, _, _ = bytes.Cut(bytes.Trim(line, " \t"), []byte{0})
	name, argument := string(line), ""
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		name, argument, cut = string(line[:i]), strings.TrimLeft(string(line[i:]), " \t"), false
	}
	if name == "" || cut { // half a name
		return program{script: true}
	}
	return program{known: true, script: true, interpreter: name, argument: argument}
}

// maxInterp bounds the path in PT_INTERP, as the kernel does.
const maxInterp = 4096

// elfInterpreter reads PT_INTERP of a 64-bit little-endian file: what the two
// architectures of jail run. debug/elf would read all sections for it.
func elfInterpreter(f io.ReaderAt, head []byte) string {
	const class64, littleEndian, headerSize, entrySize, ptInterp = 2, 1, 64, 56, 3
	if len(head) < headerSize || head[4] != class64 || head[5] != littleEndian {
		return ""
	}
	le := binary.LittleEndian
	at, n := le.Uint64(head[32:]), int(le.Uint16(head[56:]))
	table := make([]byte, n*entrySize)
	if at > 1<<40 || le.Uint16(head[54:]) != entrySize {
		return ""
	}
	if _, err := f.ReadAt(table, int64(at)); err != nil {
		return ""
	}
	for ; len(table) > 0; table = table[entrySize:] {
		offset, size := le.Uint64(table[8:]), le.Uint64(table[32:])
		if le.Uint32(table) != ptInterp {
			continue
		}
		if size > maxInterp || offset > 1<<40 {
			return "" // the kernel takes the first, and looks no further
		}
		name := make([]byte, size)
		if _, err := f.ReadAt(name, int64(offset)); err != nil {
			return ""
		}
		name, _, _ = bytes.Cut(name, []byte{0})
		return string(name)
	}
	return ""
}

// throughEnv is the program that "#!/usr/bin/env NAME" really runs, "" if the
// script does not go through env.
func (p program) throughEnv() string {
	if !p.script || filepath.Base(p.interpreter) != "env" {
		return ""
	}
	for _, word := range strings.Fields(p.argument) {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
}
