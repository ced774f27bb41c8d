package plan

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// On random trees of directories, files and links the view says what the kernel
// says, in whatever order it is asked.
func TestViewEqualsTheKernel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	found := 0
	for range 200 {
		base, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		names := randomLinks(t, r, base)
		v := newView()
		for range 40 {
			path := filepath.Join(base, names[r.IntN(len(names))], names[r.IntN(len(names))])
			if r.IntN(2) == 0 {
				path = filepath.Join(base, names[r.IntN(len(names))])
			}
			want, err := kernelPath(path)
			real, exists, got := v.real(path)
			if err == nil {
				found++
			}
			switch {
			case err == nil && (got != nil || !exists || real != want):
				t.Fatalf("%s: want %s, got %s %t %v\n%s", path, want, real, exists, got, listing(base))
			case err != nil && err != syscall.ENOTDIR && got == nil && exists: // for ENOTDIR see TestViewOddities
				t.Fatalf("%s: want %v, got %s\n%s", path, err, real, listing(base))
			}
		}
	}
	if found < 500 {
		t.Errorf("only %d names led somewhere", found)
	}
}

// kernelPath is the real path as the kernel resolves it.
func kernelPath(path string) (string, error) {
	fd, err := syscall.Open(path, 0x200000|syscall.O_CLOEXEC, 0) // O_PATH
	if err != nil {
		return "", err
	}
	defer syscall.Close(fd)
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
}

func randomLinks(t *testing.T, r *rand.Rand, base string) []string {
	names := []string{"."}
	dirs := []string{"."}
	for i := range 12 {
		n := filepath.Join(dirs[r.IntN(len(dirs))], fmt.Sprintf("n%d", i))
		full := filepath.Join(base, n)
		var err error
		switch r.IntN(6) {
		case 0, 1:
			err = os.Mkdir(full, 0o700)
			dirs = append(dirs, n)
		case 2:
			err = os.WriteFile(full, nil, 0o600)
		case 3:
			err = os.Symlink(filepath.Join(base, names[r.IntN(len(names))]), full)
		case 4: // relative, with ".." after links, "." and doubled slashes
			parts := []string{"..", ".", "", "..", fmt.Sprintf("n%d", r.IntN(12)), fmt.Sprintf("n%d", r.IntN(12))}
			r.Shuffle(len(parts), func(a, b int) { parts[a], parts[b] = parts[b], parts[a] })
			target := strings.Join(parts[:1+r.IntN(5)], "/")
			if target == "" {
				target = "."
			}
			err = os.Symlink(target, full)
		case 5: // to itself, to nowhere, or to what comes later
			err = os.Symlink(fmt.Sprintf("n%d", r.IntN(14)), full)
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, n)
	}
	return names
}

func listing(base string) string {
	var b strings.Builder
	filepath.WalkDir(base, func(path string, d os.DirEntry, err error) error {
		target, _ := os.Readlink(path)
		fmt.Fprintf(&b, "%s %s -> %s\n", d.Type(), path, target)
		return nil
	})
	return b.String()
}

func TestViewOddities(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"d/e", "x"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{
		"self": "self", "ping": "pong", "pong": "ping", "dangling": "no/such", "up": "d/e/..", "updir": "x/../d/e", "abs": base + "/d",
		"root": "/", "above": "/../../", "throughfile": "f/../d", "slash": "d/", "fslash": "f/", "viadangling": "dangling/../d", "dots": "./d/./e//",
		"l0": "d",
	}
	for i := 1; i <= 39; i++ {
		links[fmt.Sprintf("l%d", i)] = fmt.Sprintf("l%d", i-1)
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, want string
		exists     bool
		err        error
	}{
		{"d", "d", true, nil},
		{"d/no", "d/no", false, nil},
		{"d/no/no", "d/no/no", false, nil},
		{"abs/no", "d/no", false, nil},
		{"up", "d", true, nil},
		{"updir", "d/e", true, nil},
		{"slash", "d", true, nil},
		{"dots", "d/e", true, nil},
		{"l39", "d", true, nil}, // 40 links, the kernel's limit
		{"l39/e", "d/e", true, nil},
		{"self", "", false, syscall.ELOOP},
		{"self/x", "", false, syscall.ELOOP},
		{"ping", "", false, syscall.ELOOP},
		{"dangling", "", false, syscall.ENOENT},
		{"dangling/x", "", false, syscall.ENOENT},
		{"viadangling", "", false, syscall.ENOENT},
		{"f/x", "", false, syscall.ENOTDIR},
		{"throughfile", "", false, syscall.ENOTDIR},
		{"fslash", "", false, syscall.ENOTDIR},
	} {
		real, exists, err := newView().real(filepath.Join(base, tt.name))
		switch {
		case tt.err != nil:
			if !errors.Is(err, tt.err) {
				t.Errorf("%s: want %v, got %s %v", tt.name, tt.err, real, err)
			}
		case err != nil || real != filepath.Join(base, tt.want) || exists != tt.exists:
			t.Errorf("%s: want %s %t, got %s %t %v", tt.name, tt.want, tt.exists, real, exists, err)
		}
	}
	for _, name := range []string{"root", "above"} {
		if real, exists, err := newView().real(filepath.Join(base, name)); real != "/" || !exists || err != nil {
			t.Errorf("%s: want /, got %s %t %v", name, real, exists, err)
		}
	}
	// What was asked before must not change an answer.
	v := newView()
	for i := 39; i >= 0; i-- {
		if real, _, err := v.real(filepath.Join(base, fmt.Sprintf("l%d", i))); err != nil || real != base+"/d" {
			t.Errorf("l%d: %s %v", i, real, err)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		path, dir string
		want      bool
	}{
		{"/a", "/a", true},
		{"/a/b", "/a", true},
		{"/ab", "/a", false},
		{"/a", "/a/b", false},
		{"/a", "/", true},
		{"/", "/", true},
		{"/", "/a", false},
	} {
		if got := within(tt.path, tt.dir); got != tt.want {
			t.Errorf("%s in %s: want %t", tt.path, tt.dir, tt.want)
		}
	}
}
