package runner

/*
// Nothing that the C library sets up is there yet (runner.c).
#cgo CFLAGS: -Wall -Wextra -O2 -fno-stack-protector
#cgo LDFLAGS: -Wl,-e,jailstart
#include "runner.h"
*/
import "C"

import (
	"encoding/binary"
	"strings"
)

// Ask is the flag of an execveat(2) without any file by which a runner asks for
// its order.
const Ask = C.JAIL_ASK

// Order says what a runner does.
type Order struct {
	// Say is printed, and the runner ends with Status, which is not 0.
	Say    string
	Status uint8

	Path  string   // executed
	Words []string // take the place of the first argument; none: it stays
	Layer Layer
}

// Layer is what the runner puts on before.
type Layer struct {
	Ruleset int     // of Landlock, by its number in the runner; -1 is none
	Filter  []byte  // a seccomp program
	Limits  []Limit // no limit is raised by it
	Drop    []string
}

// Limit is a hard limit of setrlimit(2).
type Limit struct {
	Resource int
	Value    uint64
}

// Bytes is the order as runner.c reads it. A NUL in a string would end it
// there, so none may have one: none that comes from the kernel does.
func (o Order) Bytes() []byte {
	text := []string{o.Path}
	if o.Status != 0 {
		text[0] = o.Say
	}
	text = append(append(text, o.Words...), o.Layer.Drop...)
	var b []byte
	for _, n := range []uint32{
		uint32(o.Status), uint32(int32(o.Layer.Ruleset)),
		uint32(len(o.Layer.Limits)), uint32(len(o.Layer.Filter) / 8), uint32(len(o.Words)), uint32(len(o.Layer.Drop)),
	} {
		b = binary.NativeEndian.AppendUint32(b, n)
	}
	for _, l := range o.Layer.Limits {
		b = binary.NativeEndian.AppendUint64(b, uint64(l.Resource))
		b = binary.NativeEndian.AppendUint64(b, l.Value)
	}
	b = append(b, o.Layer.Filter...)
	for _, s := range text {
		s, _, _ = strings.Cut(s, "\x00")
		b = append(append(b, s...), 0)
	}
	return b
}
