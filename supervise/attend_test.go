package supervise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jail/seccomp"
)

// A path that the jail can lead elsewhere is looked up each time.
func TestSteady(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"usr/bin", "etc", "work", "proc"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"bin": "usr/bin", "usr/bin/sh": "dash", "usr/bin/cc": "/etc/cc", "etc/cc": "../usr/bin/gcc", "usr/bin/mine": "/work/mine",
		"work/back": "/usr/bin/dash", "usr/bin/there": "/work/back", "usr/bin/loop": "loop", "usr/bin/self": "/proc/self/exe", "usr/bin/odd": "dash/../dash",
	} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	s := &server{root: fd, Options: Options{Writable: func(path string) bool { return path == "/work" || strings.HasPrefix(path, "/work/") }}}
	for name, want := range map[string]bool{
		"/usr/bin/dash": true, "/bin/dash": true, "/bin/sh": true, "/usr/bin/cc": true, "/bin/cc": true,
		"/work/x": false, "/work": false, "/usr/bin/mine": false, "/bin/mine": false, "/work/back": false, "/usr/bin/there": false,
		"/usr/bin/loop": false, "/usr/bin/self": false, "/proc/self/exe": false, "/usr/bin/odd": false,
		"/usr/../usr/bin/dash": false, "usr/bin/dash": false, "": false, "/usr//bin/dash": false,
	} {
		if got := s.steady(name); got != want {
			t.Errorf("steady(%q) = %v", name, got)
		}
	}
}

func TestRemember(t *testing.T) {
	a := newAttendant(seccomp.Listener{}, Options{})
	known := func(name string) bool {
		b := append([]byte(name), 0)
		return a.knows(os.Getpid(), &b[0])
	}
	long := "/" + strings.Repeat("x", 126)
	for _, name := range []string{"/usr/bin/dash", long, long + "x", ""} {
		if known(name) {
			t.Errorf("%q is known at first", name)
		}
		a.remember(name)
		if want := len(name) > 0 && len(name) <= 127; known(name) != want {
			t.Errorf("%q is known: %v", name, !want)
		}
	}
	for _, name := range []string{"/usr/bin/dash2", "/usr/bin/das", "/usr/bin", "usr/bin/dash"} {
		if known(name) {
			t.Errorf("%q is known", name)
		}
	}
}

// What was left to the kernel once is looked at again where it may have changed,
// and a guide is asked each time. An old kernel is polled.
func TestAttend(t *testing.T) {
	for _, old := range []bool{false, true} {
		c := newCell(t)
		c.old = old
		c.Options.Guides = []Guide{{Words: []string{"env", "-0"}, Refusal: Refusal{Key: "env", Message: "no zeros"}}}
		c.want(c.shell(hello, `ln -s /usr/bin/echo l
for i in 1 2 3; do /bin/echo system $i; $PWD/l link $i; done
ln -sf hello l; $PWD/l; mv hello l; $PWD/l
/usr/bin/env true; /usr/bin/env -0 true; echo $?; test -x /bin/echo && echo executable`),
			"system 1\nlink 1\nsystem 2\nlink 2\nsystem 3\nlink 3\nhello \nhello \n126\nexecutable\n")
	}
}
