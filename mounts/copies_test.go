package mounts

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// What the jail puts in the place of its copies leads jail to no other file.
func TestUnkeptFollowsNoLink(t *testing.T) {
	config, outside := filepath.Join(t.TempDir(), "config"), t.TempDir()
	l := Layout{Temp: t.TempDir(), Covers: []Cover{{Path: config, Kind: Copy}}}
	at := filepath.Join(l.Temp, copies)
	if err := errors.Join(os.WriteFile(config, []byte("text"), 0o600), os.WriteFile(filepath.Join(outside, "copy"), []byte("text"), 0o600), l.makeCopies()); err != nil {
		t.Fatal(err)
	}
	if got := l.Unkept(); len(got) != 0 { // the control
		t.Errorf("unchanged: %q", got)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(at, "0")), os.Symlink(outside, filepath.Join(at, "0"))); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(at, "0", "copy")); err != nil || string(text) != "text" {
		t.Errorf("control: %q, %v", text, err)
	}
	if got := l.Unkept(); len(got) != 1 || got[0] != config {
		t.Errorf("by a link: %q", got)
	}
}

// What is no config gets no copy, and is protected all the same.
func TestNoCopy(t *testing.T) {
	dir := t.TempDir()
	fifo, huge := filepath.Join(dir, "fifo"), filepath.Join(dir, "huge")
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.WriteFile(huge, nil, 0o600), os.Truncate(huge, maxCopy+1)); err != nil {
		t.Fatal(err)
	}
	l := Layout{Temp: t.TempDir(), Covers: []Cover{{Path: fifo, Kind: Copy}, {Path: huge, Kind: Copy}}}
	parents := l
	parents.Covers = slices.Clone(l.Covers)
	if err := l.makeCopies(); err != nil {
		t.Fatal(err)
	}
	for _, c := range l.Covers {
		if c.Kind != Protect {
			t.Errorf("%+v", c)
		}
	}
	if got := parents.Unkept(); len(got) != 0 {
		t.Errorf("unkept: %q", got)
	}
}
