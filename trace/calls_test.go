package trace

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What a call wants is in its flags.
func TestWants(t *testing.T) {
	open := func(flags uint64) Want { return opening(2)([6]uint64{2: flags}) }
	ask := func(mode uint64) Want { return asking(1)([6]uint64{1: mode}) }
	for name, tt := range map[string]struct{ got, want Want }{
		"read":          {open(unix.O_RDONLY | unix.O_CLOEXEC), Read},
		"write":         {open(unix.O_WRONLY), Write},
		"both":          {open(unix.O_RDWR), Read | Write},
		"create":        {open(unix.O_RDONLY | unix.O_CREAT), Write},
		"truncate":      {open(unix.O_RDONLY | unix.O_TRUNC), Write},
		"path only":     {open(unix.O_PATH | unix.O_RDWR), Look},
		"exists":        {ask(unix.F_OK), Look},
		"may write":     {ask(unix.W_OK | unix.R_OK), Read | Write},
		"may execute":   {ask(unix.X_OK), Exec},
		"code":          {mapping([6]uint64{2: unix.PROT_EXEC | unix.PROT_READ, 3: unix.MAP_PRIVATE}), Load},
		"data":          {mapping([6]uint64{2: unix.PROT_READ, 3: unix.MAP_PRIVATE}), Look},
		"code, no file": {mapping([6]uint64{2: unix.PROT_EXEC, 3: unix.MAP_ANONYMOUS}), Look},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %b, want %b", name, tt.got, tt.want)
		}
	}
}

// A path is followed as the kernel does: ".." after a link is the parent of where it
// leads, and of what is not there the directory is resolved.
func TestResolve(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(base, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a/b", filepath.Join(base, "l")); err != nil {
		t.Fatal(err)
	}
	d, err := os.Open(filepath.Join(base, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, tt := range []struct {
		dir    int32
		name   string
		follow bool
		want   string
	}{
		{unix.AT_FDCWD, base + "/l/../x", true, base + "/a/x"},
		{unix.AT_FDCWD, base + "/l", true, base + "/a/b"},
		{unix.AT_FDCWD, base + "/l", false, base + "/l"},
		{int32(d.Fd()), "../l/new", true, base + "/a/b/new"},
		{int32(d.Fd()), "", true, base + "/a"},
		{unix.AT_FDCWD, base + "/no/where", true, base + "/no/where"},
		{unix.AT_FDCWD, "/proc/self/../self/exe", true, "/proc/self/exe"},
	} {
		if got, ok := resolve(os.Getpid(), tt.dir, tt.name, tt.follow); !ok || got != tt.want {
			t.Errorf("%q: %q, want %q", tt.name, got, tt.want)
		}
	}
}
