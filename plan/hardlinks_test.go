package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jail/internal/testenv"
)

// linkRules let a tool tree execute and the project be written; both belong to
// the user, and the home of root is where root's own files are looked at.
const linkRules = "files = { write = ['.'], exec = ['~/x'] }"

// What can't be looked at is not proved, and said.
func TestHardLinksNotProved(t *testing.T) {
	for _, tt := range []struct {
		name string
		root bool // it holds for root too
		make func(w *world)
		want string
	}{
		{"nothing", true, func(w *world) {}, ""},
		{"found", true, func(w *world) { w.hard("home/x/tool", "home/proj/t") }, "hard link"},
		{"closed directory in the exec tree", false, func(w *world) {
			w.file("home/x/closed/tool", "")
			w.hard("home/x/closed/tool", "home/proj/t")
			w.chmod("home/x/closed", 0o311)
		}, "can't be looked through"},
		{"no way into a directory in the exec tree", false, func(w *world) {
			w.file("home/x/closed/tool", "")
			w.hard("home/x/closed/tool", "home/proj/t")
			w.chmod("home/x/closed", 0o644)
		}, "can't be looked through"},
		{"closed directory in the write tree", false, func(w *world) {
			w.dirs("home/proj/closed")
			w.hard("home/x/tool", "home/proj/closed/t")
			w.chmod("home/proj/closed", 0o311)
		}, "can't be looked through"},
		{"closed, with no link anywhere", true, func(w *world) {
			w.dirs("home/proj/closed")
			w.chmod("home/proj/closed", 0o311)
		}, ""},
		{"deeper than a path can be", true, func(w *world) {
			w.deep("home/proj", "home/x/tool")
		}, "can't be looked through"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if os.Getuid() == 0 && !tt.root {
				t.Log("modes do not stop root, who looks through all: the link itself is found")
			}
			w := newWorld(t)
			w.file("home/x/tool", "#!/bin/sh\n")
			tt.make(w)
			_, err := w.compile(linkRules)
			want := tt.want
			if os.Getuid() == 0 && !tt.root {
				want = "hard link"
			}
			if said := strings.Join(w.said(err), "\n"); want == "" && err != nil || !strings.Contains(said, want) {
				t.Errorf("want %q, got %q", want, said)
			}
		})
	}
}

// Where exec trees are large and nothing that may be written has a second name,
// that is the proof; else they are looked through.
func TestHardLinksFromTheOtherEnd(t *testing.T) {
	w := newWorld(t)
	for i := range 2001 {
		w.file(fmt.Sprintf("home/x/%d", i), "")
	}
	searched := func() bool { return len(w.plan(linkRules).Proof.Searched) > 0 }
	if searched() {
		t.Error("looked through the exec tree for nothing")
	}
	w.host.Whole = true
	if !searched() {
		t.Error("not looked through, for somebody who wants to know")
	}
	w.host.Whole = false
	w.file("home/proj/a", "")
	w.hard("home/proj/a", "out/a")
	if !searched() {
		t.Error("not looked through, although a file has a second name")
	}
	w.hard("home/x/2000", "home/proj/deep")
	_, err := w.compile(linkRules)
	if said := strings.Join(w.said(err), "\n"); !strings.Contains(said, "hard link") {
		t.Errorf("%q", said)
	}
}

// One name seen through two mounts is one name: the other one of the file is
// elsewhere. It takes a mount, so only root can show it here.
func TestHardLinkUnderTwoMounts(t *testing.T) {
	w := newWorld(t)
	w.file("home/x/tool", "")
	w.dirs("home/y")
	w.hard("home/x/tool", "home/proj/t")
	testenv.Need(t, "root", unix.Mount(w.path("home/x"), w.path("home/y"), "", unix.MS_BIND, ""))
	t.Cleanup(func() { unix.Unmount(w.path("home/y"), unix.MNT_DETACH) })
	_, err := w.compile("files = { write = ['.'], exec = ['~/x', '~/y'] }")
	if said := strings.Join(w.said(err), "\n"); !strings.Contains(said, "hard link") {
		t.Errorf("%q", said)
	}
}

// A file in the layer of an overlay may have another name where the jail writes.
func TestHardLinkIntoOverlayLayer(t *testing.T) {
	w := newWorld(t)
	w.dirs("home/upper", "home/work", "home/x")
	w.file("home/layer/tool", "")
	w.hard("home/layer/tool", "home/proj/t")
	options := "lowerdir=" + w.path("home/layer") + ",upperdir=" + w.path("home/upper") + ",workdir=" + w.path("home/work")
	testenv.Need(t, "root", unix.Mount("overlay", w.path("home/x"), "overlay", 0, options))
	t.Cleanup(func() { unix.Unmount(w.path("home/x"), unix.MNT_DETACH) })
	_, err := w.compile(linkRules)
	if said := strings.Join(w.said(err), "\n"); !strings.Contains(said, "hard link") {
		t.Errorf("%q", said)
	}
}

func (w *world) chmod(name string, mode os.FileMode) {
	w.t.Helper()
	w.must(os.Chmod(w.path(name), mode))
	w.t.Cleanup(func() { os.Chmod(w.path(name), 0o755) })
}

// deep makes a link to target deeper than a path can name, and removes all of it
// at the end, which path names can't.
func (w *world) deep(name, target string) {
	w.t.Helper()
	word := strings.Repeat("d", 250)
	fd, err := unix.Open(w.path(name), unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	w.must(err)
	for range 20 {
		w.must(unix.Mkdirat(fd, word, 0o755))
		next, err := unix.Openat(fd, word, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		w.must(err)
		unix.Close(fd)
		fd = next
	}
	w.must(unix.Linkat(unix.AT_FDCWD, w.path(target), fd, "t", 0))
	unix.Close(fd)
	w.t.Cleanup(func() { os.RemoveAll(filepath.Join(w.path(name), word)) })
}
