package plan

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestInspect(t *testing.T) {
	for _, tt := range []struct {
		text string
		want program
	}{
		{"", program{}},
		{"echo", program{}},
		{"#!", program{script: true}},
		{"#! \n/bin/sh", program{script: true}},
		{"#!/bin/sh", program{known: true, script: true, interpreter: "/bin/sh"}},
		{"#! /bin/sh -e x\nrest", program{known: true, script: true, interpreter: "/bin/sh", argument: "-e x"}},
		{"#!" + strings.Repeat("/", 300) + "\n", program{script: true}}, // half a name
		{"\x7fELF", program{known: true}},
		{fakeELF("/lib/ld.so"), program{known: true, interpreter: "/lib/ld.so"}},
		{fakeELF("/lib/ld.so")[:100], program{known: true}},
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(tt.text), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := inspect(path); got != tt.want {
			t.Errorf("%.40q: want %+v, got %+v", tt.text, tt.want, got)
		}
	}
}

// fakeELF is a header and one PT_INTERP, 64 bits, little endian.
func fakeELF(interpreter string) string {
	b := make([]byte, 64+56)
	copy(b, "\x7fELF\x02\x01")
	le := binary.LittleEndian
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 1)
	le.PutUint32(b[64:], 3)
	le.PutUint64(b[64+8:], uint64(len(b)))
	le.PutUint64(b[64+32:], uint64(len(interpreter)+1))
	return string(b) + interpreter + "\x00"
}

func TestThroughEnv(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/bin/env node": "node", "/usr/bin/env -S A=1 node --x": "node", "/usr/bin/env": "", "/bin/sh -e": "",
	} {
		if got := parseScript([]byte(line)).throughEnv(); got != want {
			t.Errorf("%q: want %q, got %q", line, want, got)
		}
	}
}

// A "#!" line is read as the kernel reads it.
func TestParseScript(t *testing.T) {
	long := strings.Repeat("x", 300)
	for line, want := range map[string]program{
		"/bin/sh\nrest":            {known: true, script: true, interpreter: "/bin/sh"},
		" \t/bin/sh \t-a  -b \t\n": {known: true, script: true, interpreter: "/bin/sh", argument: "-a  -b"},
		"/bin/sh\r\n":              {known: true, script: true, interpreter: "/bin/sh\r"},
		"/bin/sh\u00a0-e\n":        {known: true, script: true, interpreter: "/bin/sh\u00a0-e"},
		"/bin/sh\x00x\n":           {known: true, script: true, interpreter: "/bin/sh"},
		"/bin/sh":                  {known: true, script: true, interpreter: "/bin/sh"},
		"/" + long:                 {script: true},
		"/x " + long:               {known: true, script: true, interpreter: "/x", argument: long[:254-3]},
		" \n/bin/sh":               {script: true},
	} {
		if got := parseScript([]byte(line)); got != want {
			t.Errorf("%q: want %+v, got %+v", line, want, got)
		}
	}
}

// FuzzScript: no first line makes the reader panic, and what it returns stands in
// the line, in this order, with only blanks between.
func FuzzScript(f *testing.F) {
	f.Add([]byte(" /bin/sh -e\n"))
	f.Add([]byte("\t\r\v\x00\n"))
	f.Fuzz(func(t *testing.T, rest []byte) {
		p := parseScript(rest)
		switch {
		case !p.script, p.known != (p.interpreter != ""):
			t.Errorf("%q: %+v", rest, p)
		case strings.ContainsAny(p.interpreter, " \t\n\x00"), strings.ContainsAny(p.argument, "\n\x00"):
			t.Errorf("%q: %+v", rest, p)
		case !bytes.Contains(rest, []byte(p.interpreter)), !bytes.Contains(rest, []byte(p.argument)):
			t.Errorf("%q: %+v", rest, p)
		}
	})
}

// FuzzInterpreter: no bytes make the reader of ELF files panic, and what it
// returns stands in the file.
func FuzzInterpreter(f *testing.F) {
	f.Add([]byte(fakeELF("/lib64/ld-linux-x86-64.so.2")))
	f.Add([]byte("\x7fELF\x02\x01"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := elfInterpreter(bytes.NewReader(text), text[:min(len(text), 4096)])
		if !bytes.Contains(text, []byte(got)) {
			t.Errorf("%q", got)
		}
	})
}

// FuzzEntries: no bytes make the reader of directories panic.
func FuzzEntries(f *testing.F) {
	record := make([]byte, 24)
	binary.NativeEndian.PutUint16(record[16:], 24)
	record[18] = unix.DT_REG
	copy(record[19:], "name")
	f.Add(record)
	f.Add(record[:20])
	f.Fuzz(func(t *testing.T, records []byte) {
		for _, e := range appendEntries(nil, -1, records) {
			if e.name == "." || e.name == ".." || strings.Contains(e.name, "\x00") {
				t.Errorf("%q", e.name)
			}
		}
	})
}

// A directory is read as os.ReadDir reads it.
func TestReadListing(t *testing.T) {
	want := map[string]bool{}
	entries, err := os.ReadDir("/usr/bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		want[e.Name()] = e.Type().IsRegular()
	}
	l := readListing("/usr/bin", make([]byte, 4096)) // in many pieces
	if l.err != nil || len(l.entries) != len(want) {
		t.Fatalf("%d entries, want %d (%v)", len(l.entries), len(want), l.err)
	}
	for _, e := range l.entries {
		if regular, ok := want[e.name]; !ok || regular != e.isRegular() {
			t.Errorf("%+v", e)
		}
	}
}
