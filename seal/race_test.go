package seal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// A jail that rewrites a file while it is sealed gets neither refused bytes nor a
// mixture sealed.
func TestWrittenMeanwhile(t *testing.T) {
	const size = 1 << 20
	path := write(t, filepath.Join(tempDir(t), "x"), strings.Repeat("g", size))
	good, evil := sha256.Sum256([]byte(strings.Repeat("g", size))), sha256.Sum256([]byte(strings.Repeat("e", size)))
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	r.Options.Refuse = func(d Digest, _ int64) error {
		if d == evil {
			return errors.New("evil")
		}
		return nil
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	wg.Go(func() {
		for i := 0; !stop.Load(); i++ {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Error(err)
				return
			}
			f.WriteString(strings.Repeat("ge"[i%2:i%2+1], size))
			f.Close()
		}
	})
	seen := map[Reason]int{}
	for range 100_000 {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.Program(file, path)
		file.Close()
		var refusal *Refusal
		switch {
		case errors.As(err, &refusal):
			seen[refusal.Reason]++
		case err != nil:
			t.Fatal(err)
		case s.Digest != good || read(t, s.Path) != strings.Repeat("g", size):
			t.Fatalf("sealed %x", s.Digest)
		default:
			seen["sealed"]++
		}
		if seen[Busy] > 20 && seen[Denied] > 3 && seen["sealed"] > 3 {
			break
		}
	}
	if seen[Busy] == 0 || seen[Denied] == 0 || seen["sealed"] == 0 {
		t.Errorf("the race was not run: %v", seen)
	}
}

// Nor does exchanging two files help: a handle stays what it is.
func TestExchangedMeanwhile(t *testing.T) {
	dir := tempDir(t)
	good, evil := write(t, filepath.Join(dir, "good"), "good"), write(t, filepath.Join(dir, "evil"), "evil")
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	r.Options.Refuse = func(d Digest, _ int64) error {
		if d == sha256.Sum256([]byte("evil")) {
			return errors.New("evil")
		}
		return nil
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	wg.Go(func() {
		for !stop.Load() {
			if err := unix.Renameat2(unix.AT_FDCWD, good, unix.AT_FDCWD, evil, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
		}
	})
	wins, losses := 0, 0
	for i := 0; i < 100_000 && (wins < 50 || losses < 50); i++ {
		f, err := os.Open(good)
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.Program(f, good)
		f.Close()
		if err == nil {
			wins++
			if text := read(t, s.Path); text != "good" {
				t.Fatalf("sealed %q", text)
			}
			continue
		}
		losses++
		wantReason(t, err, Denied)
	}
	if wins == 0 || losses == 0 {
		t.Errorf("the race was not run: %d, %d", wins, losses)
	}
}

// A file that everybody wants at once is copied once.
func TestThousandAtOnce(t *testing.T) {
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	path := write(t, filepath.Join(tempDir(t), "a.out"), strings.Repeat("x", 1<<20))
	var wg sync.WaitGroup
	paths := make([]string, 1000)
	for i := range paths {
		wg.Go(func() {
			f, err := os.Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			s, err := r.Program(f, path)
			if err != nil {
				t.Error(err)
			}
			paths[i] = s.Path
		})
	}
	wg.Wait()
	for _, p := range paths {
		if p != paths[0] {
			t.Fatalf("%q and %q", p, paths[0])
		}
	}
	if made := r.names.Load(); made > 10 {
		t.Errorf("%d files were made", made)
	}
}

// Many programs, in directories that are shared, at once.
func TestManyAtOnce(t *testing.T) {
	dir := tempDir(t)
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	var paths []string
	for i := range 60 {
		name := fmt.Sprintf("d%d/e%d/f%d/x%d", i%2, i%3, i%5, i)
		paths = append(paths, write(t, filepath.Join(dir, name[i%4*3:]), fmt.Sprint(i%10)))
	}
	var wg sync.WaitGroup
	for range 4 {
		for i, path := range paths {
			wg.Go(func() {
				f, err := os.Open(path)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				s, err := r.Program(f, path)
				if err != nil {
					t.Errorf("%q: %v", path, err)
					return
				}
				if text, err := os.ReadFile(s.Path); err != nil || string(text) != fmt.Sprint(i%10) {
					t.Errorf("%q is %q, %v", s.Path, text, err)
				}
				if original, ok := r.Original(s.Path); !ok || original != path {
					t.Errorf("the original of %q is %q", s.Path, original)
				}
			})
		}
	}
	wg.Wait()
	for _, path := range paths {
		if s := program(t, r, path); !s.Cached {
			t.Errorf("%q was copied again", path)
		}
	}
}

// Runs that start sweep, and must not sweep each other.
func TestStartedAtOnce(t *testing.T) {
	dir := filepath.Join(tempDir(t), "seal")
	path := write(t, filepath.Join(tempDir(t), "x"), "x")
	var wg sync.WaitGroup
	for range 8 {
		s := openStore(t, dir, 0)
		wg.Go(func() {
			for range 20 {
				r, err := s.NewRun()
				if err != nil {
					t.Error(err)
					return
				}
				f, err := os.Open(path)
				if err != nil {
					t.Error(err)
					return
				}
				if sealed, err := r.Program(f, path); err != nil {
					t.Error(err)
				} else if _, err := os.Lstat(sealed.Path); err != nil {
					t.Error(err)
				}
				if err := errors.Join(f.Close(), r.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
