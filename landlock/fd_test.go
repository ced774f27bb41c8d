package landlock_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jail/landlock"
	"jail/plan"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What was replaced between plan and rule is an error that names it.
func TestReplaced(t *testing.T) {
	need(t)
	const replaced = `"B/r" was replaced while jail was starting`
	for _, tt := range []struct {
		name string
		make func(b string)
		want string // of the error, with the base as "B"
	}{
		{"as it was", func(string) {}, ""},
		{"gone", func(b string) { must(t, os.Remove(b+"/r")) }, `opening "B/r" for its rule: no such file or directory`},
		{"another directory", func(b string) { must(t, unix.Renameat2(-1, b+"/r", -1, b+"/x", unix.RENAME_EXCHANGE)) }, replaced},
		{"a file", func(b string) { must(t, unix.Renameat2(-1, b+"/r", -1, b+"/rf", unix.RENAME_EXCHANGE)) }, replaced},
		{
			"a link to another", func(b string) { must(t, os.Remove(b+"/r")); must(t, os.Symlink("x", b+"/r")) },
			`opening "B/r" for its rule: too many levels of symbolic links`,
		},
		{
			"a link to the same", func(b string) { must(t, os.Rename(b+"/r", b+"/r2")); must(t, os.Symlink("r2", b+"/r")) },
			`opening "B/r" for its rule: too many levels of symbolic links`,
		},
		{
			"made again", func(b string) {
				must(t, os.Mkdir(b+"/new", 0o755)) // keeps the inode number from being used again
				must(t, os.Remove(b+"/r"))
				must(t, os.Rename(b+"/new", b+"/r"))
			}, replaced,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, b := compile(t, `files.read = ["${B}/r"]`)
			tt.make(b)
			fd, err := landlock.Compile(p, 7).FD()
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), b, "B")
			} else {
				unix.Close(fd)
			}
			if got != tt.want {
				t.Errorf("want %q, got %q", tt.want, got)
			}
		})
	}
}

// A directory that is granted entry by entry, and a file whose digest was right,
// must be as the plan has seen them.
func TestSplitAndPinReplaced(t *testing.T) {
	need(t)
	const changed = `"B/x" was changed while jail was starting`
	for _, tt := range []struct {
		name string
		make func(b string)
		want string // of the error, with the base as "B"
	}{
		{"as it was", func(string) {}, ""},
		{"a new name", func(b string) { must(t, os.WriteFile(b+"/x/new", nil, 0o755)) }, changed},
		{"gone", func(b string) { must(t, os.Remove(b+"/x/other")) }, changed},
		{"the denied file under another name", func(b string) { must(t, os.Rename(b+"/x/denied", b+"/x/other")) }, changed},
		{"a link to it", func(b string) { must(t, os.Remove(b+"/x/other")); must(t, os.Symlink("denied", b+"/x/other")) }, changed},
		{"there and back", func(b string) { must(t, os.Rename(b+"/x/other", b+"/o")); must(t, os.Rename(b+"/o", b+"/x/other")) }, changed},
		{"pinned file changed", func(b string) { must(t, os.WriteFile(b+"/x/pinned", []byte("other"), 0o755)) }, `"B/x/pinned", whose digest was right, was replaced while jail was starting`},
		{"pinned file touched", func(b string) { must(t, os.Chmod(b+"/x/pinned", 0o700)) }, `"B/x/pinned", whose digest was right, was replaced while jail was starting`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, base := compile(t, "")
			for _, name := range []string{"denied", "other", "pinned"} {
				must(t, os.WriteFile(base+"/x/"+name, []byte("\x7fELF"+name), 0o755))
			}
			sum := sha256.Sum256([]byte("\x7fELFpinned"))
			p := compileIn(t, base, "files.exec = ['${B}/x']\ncommands.deny = ['${B}/x/denied']\n"+
				"[[command]]\nname = '${B}/x/pinned'\nsha256 = '"+hex.EncodeToString(sum[:])+"'")
			time.Sleep(20 * time.Millisecond) // the clock of ctime ticks that slowly
			tt.make(base)
			fd, err := landlock.Compile(p, 7).FD()
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), base, "B")
			} else {
				unix.Close(fd)
			}
			if got != tt.want {
				t.Errorf("want %q, got %q", tt.want, got)
			}
		})
	}
}

// A directory above that became a link is refused too, even when the same inode
// is found behind it.
func TestReplacedAbove(t *testing.T) {
	need(t)
	p, b := compile(t, `files.read = ["${B}/proj"]`)
	must(t, os.Rename(b, b+".moved"))
	must(t, os.Symlink(b+".moved", b))
	t.Cleanup(func() { os.Remove(b); os.Rename(b+".moved", b) })
	if _, err := landlock.Compile(p, 7).FD(); !errors.Is(err, unix.ELOOP) {
		t.Errorf("want ELOOP, got %v", err)
	}
}

// A plan whose directories are still to be created has no identity for them.
func TestNotYetCreated(t *testing.T) {
	need(t)
	p, b := compile(t, `files.create = ["${B}/new"]`)
	must(t, os.Mkdir(b+"/new", 0o700))
	if _, err := landlock.Compile(p, 7).FD(); err == nil {
		t.Error("a rule was made for a directory that the plan never saw")
	}
	p, err := p.WithCreated(func(string) error { return nil })
	must(t, err)
	fd, err := landlock.Compile(p, 7).FD()
	must(t, err)
	unix.Close(fd)
}

// FD leaves no descriptors open but its own, whether it works or not.
func TestFDClosesItsHandles(t *testing.T) {
	need(t)
	count := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(names)
	}
	p, b := compile(t, `files = { read = ["${B}/r", "${B}/rf"], exec = ["${B}/x"] }`)
	before := count()
	fd, err := landlock.Compile(p, 7).FD()
	must(t, err)
	unix.Close(fd)
	must(t, os.Remove(b+"/x"))
	if _, err := landlock.Compile(p, 7).FD(); err == nil {
		t.Fatal("a path is gone and FD works")
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// swapping exchanges two names all the time until the returned function is
// called; its answer is how often.
func swapping(t *testing.T, a, b string) (stop func() int) {
	t.Helper()
	end, n := make(chan struct{}), 0
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			select {
			case <-end:
				return
			default:
				if err := unix.Renameat2(-1, a, -1, b, unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
					return
				}
				n++
			}
		}
	}()
	return func() int { close(end); wg.Wait(); return n }
}

// While a path is exchanged for another directory, for a link, or has a link put
// above it, FD fails or makes the rule on the inode of the plan; never on the
// other. The attacker must win some rounds, and lose some.
func TestRace(t *testing.T) {
	need(t)
	for _, tt := range []struct {
		name string
		make func(b string) (a, evil string) // the two names that are exchanged
	}{
		{"another directory", func(b string) (string, string) { return b + "/a/good", b + "/a/evil" }},
		{"a link", func(b string) (string, string) {
			must(t, os.Symlink("evil", b+"/a/link"))
			return b + "/a/good", b + "/a/link"
		}},
		{"a link above", func(b string) (string, string) {
			must(t, os.MkdirAll(b+"/b/good", 0o755))
			must(t, os.WriteFile(b+"/b/good/secret", nil, 0o600))
			must(t, os.Symlink(b+"/b", b+"/alink"))
			return b + "/a", b + "/alink"
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, b := compile(t, "")
			for _, f := range []string{"a/good/public", "a/evil/secret"} {
				must(t, os.MkdirAll(b+"/"+f[:strings.LastIndex(f, "/")], 0o755))
				must(t, os.WriteFile(b+"/"+f, nil, 0o600))
			}
			x, y := tt.make(b)
			rs := landlock.Compile(compileIn(t, b, `files.read = ["${B}/a/good"]`), 7)
			stop := swapping(t, x, y)
			won, lost := race(t, rs, b)
			swaps := stop()
			t.Logf("%d swaps, %d rules made, %d refused", swaps, won, lost)
			if won == 0 || lost == 0 || swaps < 100 {
				t.Error("the race was not one")
			}
		})
	}
}

func race(t *testing.T, rs landlock.Ruleset, b string) (won, lost int) {
	t.Helper()
	for i := 0; i < 2000 || i < 50000 && (won == 0 || lost == 0); i++ {
		fd, err := rs.FD()
		if err != nil {
			if named := strings.Contains(err.Error(), b+"/a/good"); !named || !strings.Contains(err.Error(), "was replaced while jail was starting") && !errors.Is(err, unix.ELOOP) &&
				!errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EAGAIN) {
				t.Fatalf("an error of another kind: %v", err)
			}
			lost++
			continue
		}
		if won++; won%20 == 1 {
			confined(t, fd, func() { reachesPublicOnly(t, b) })
		}
		unix.Close(fd)
	}
	return won, lost
}

// reachesPublicOnly looks for both files under each of their names.
func reachesPublicOnly(t *testing.T, b string) {
	public := false
	for range 200 {
		for _, dir := range []string{"/a/good/", "/a/evil/", "/a/link/", "/b/good/", "/alink/good/", "/alink/evil/", "/a/"} {
			if ok, _ := opens(b+dir+"secret", unix.O_RDONLY); ok {
				t.Errorf("%ssecret can be read: the rule is on the wrong inode", dir)
				return
			}
			if ok, _ := opens(b+dir+"public", unix.O_RDONLY); ok {
				public = true
			}
		}
		if public {
			return
		}
	}
	t.Error("what was granted can't be read")
}

func TestOpenIsNoMatch(t *testing.T) {
	need(t)
	rs := landlock.Ruleset{Paths: []landlock.PathRule{{Path: "/", ID: plan.ID{Dev: 1, Ino: 1}}}}
	if _, err := rs.FD(); err == nil || err.Error() != `"/" was replaced while jail was starting` {
		t.Errorf("got %v", err)
	}
}
