package seal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A copy that is not what it should be is not used, and replaced.
func TestTamperedCopy(t *testing.T) {
	for name, tamper := range map[string]func(path string) error{
		"other bytes": func(path string) error {
			return errors.Join(os.Chmod(path, 0o700), os.WriteFile(path, []byte("evil"), 0), os.Chmod(path, 0o500))
		},
		"other length": func(path string) error {
			return errors.Join(os.Chmod(path, 0o700), os.WriteFile(path, []byte("good and evil"), 0), os.Chmod(path, 0o500))
		},
		"writable": func(path string) error { return os.Chmod(path, 0o700) },
		"set-id":   func(path string) error { return os.Chmod(path, 0o500|os.ModeSetuid) },
		"link": func(path string) error {
			return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path))
		},
		"directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o500)) },
		"absent":    os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, filepath.Join(tempDir(t), "seal"), 0)
			file := write(t, filepath.Join(tempDir(t), "x"), "good")
			first := newRun(t, s)
			sealed := program(t, first, file)
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			control := newRun(t, s)
			if s := program(t, control, file); !s.Cached {
				t.Error("control: an untouched copy is not used")
			}
			if err := control.Close(); err != nil {
				t.Fatal(err)
			}
			cached := filepath.Join(s.path, "cache", hex.EncodeToString(sealed.Digest[:]))
			if err := tamper(cached); err != nil {
				t.Fatal(err)
			}
			again := program(t, newRun(t, s), file)
			if again.Cached || read(t, again.Path) != "good" {
				t.Errorf("%+v, %q", again, read(t, again.Path))
			}
			if fi, err := os.Lstat(cached); err != nil || fi.Mode() != 0o500 || read(t, cached) != "good" {
				t.Errorf("the cache is not mended: %v, %v", fi, err)
			}
		})
	}
}

// A damaged index costs a reading, and never leads to other bytes.
func TestTamperedIndex(t *testing.T) {
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 0)
	file, other := write(t, filepath.Join(tempDir(t), "x"), "good"), write(t, filepath.Join(tempDir(t), "y"), "evil")
	r := newRun(t, s)
	good, evil := program(t, r, file), program(t, r, other)
	r.Close()
	path := filepath.Join(s.path, indexName)
	text := read(t, path)
	for name, damaged := range map[string]string{
		"another digest": strings.ReplaceAll(text, hex.EncodeToString(good.Digest[:]), hex.EncodeToString(evil.Digest[:])),
		"a lie":          string(indexLine(idOf(t, file), evil.Digest)),
		"cut":            text[:len(text)-20],
		"noise":          "\x00\xff\n" + strings.Repeat("x", 1<<16),
		"empty":          "",
	} {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		r := newRun(t, openStore(t, s.path, 0))
		if got := program(t, r, file); got.Digest != good.Digest || read(t, got.Path) != "good" {
			t.Errorf("%s: %+v", name, got)
		}
		r.Close()
	}
}

func idOf(t *testing.T, path string) fileID {
	t.Helper()
	fi, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return identify(rawStat(fi))
}

func TestIndexIsBounded(t *testing.T) {
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 0)
	for i := range indexLines + 10 {
		s.index.put(fileID{ino: uint64(i)}, Digest{1})
	}
	again := openStore(t, s.path, 0)
	if _, ok := again.index.get(fileID{ino: indexLines + 9}); !ok {
		t.Error("the newest line is lost")
	}
	if n := len(again.index.entries); n > indexLines {
		t.Errorf("%d entries", n)
	}
	if n := strings.Count(read(t, filepath.Join(s.path, indexName)), "\n"); n > indexLines {
		t.Errorf("%d lines", n)
	}
}

func TestStranger(t *testing.T) {
	foreign := "/"
	if os.Geteuid() == 0 {
		foreign = filepath.Join(tempDir(t), "seal")
		if err := errors.Join(os.Mkdir(foreign, 0o700), os.Chown(foreign, 12345, 12345)); err != nil {
			t.Fatal(err)
		}
	}
	group, everybody := filepath.Join(tempDir(t), "seal"), filepath.Join(tempDir(t), "up", "seal")
	if err := errors.Join(os.Mkdir(group, 0o700), os.Chmod(group, 0o770), os.MkdirAll(everybody, 0o700), os.Chmod(filepath.Dir(everybody), 0o777)); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(tempDir(t), "seal")
	if err := os.Symlink(tempDir(t), link); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{link: "is a symbolic link", foreign: "belongs to user", group: "may be written by others (mode 770)", everybody: "everybody may replace"} {
		s, err := Open(dir, 0)
		var problem *Problem
		if !errors.As(err, &problem) || !strings.Contains(err.Error(), want) || problem.Hint == "" {
			t.Errorf("%q: %v", dir, err)
		}
		if err == nil {
			s.Close()
		}
	}
	if err := os.Chmod(filepath.Dir(everybody), 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	openStore(t, everybody, 0)
}

// Links in the store lead nowhere.
func TestSwappedForLinks(t *testing.T) {
	victim := tempDir(t)
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 0)
	file := write(t, filepath.Join(tempDir(t), "x"), "x")
	r := newRun(t, s)
	for _, name := range []string{"cache", "runs/" + r.id + "/" + objDir, "runs/" + r.id + "/" + tmpDir} {
		path := filepath.Join(s.path, name)
		if err := errors.Join(os.Rename(path, path+".real"), os.Symlink(victim, path)); err != nil {
			t.Fatal(err)
		}
		if sealed, err := r.Program(open(t, file), file); err == nil {
			t.Errorf("%s: %+v", name, sealed)
		}
		if name == "cache" {
			if other, err := Open(s.path, 0); err == nil {
				other.Close()
				t.Error("the store opens")
			}
			if _, err := s.Collect(); err == nil {
				t.Error("the cache is collected")
			}
		}
		if err := errors.Join(os.Remove(path), os.Rename(path+".real", path)); err != nil {
			t.Fatal(err)
		}
	}
	if left := names(t, victim); len(left) != 0 {
		t.Errorf("written: %q", left)
	}
	program(t, r, file)
}

// The cache keeps what was used last, and what a run has.
func TestCap(t *testing.T) {
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 1000)
	dir := tempDir(t)
	keeps := newRun(t, s)
	kept := program(t, keeps, write(t, filepath.Join(dir, "kept"), strings.Repeat("k", 300)))
	var sealed []Sealed
	for i := range 6 {
		r := newRun(t, s)
		sealed = append(sealed, program(t, r, write(t, filepath.Join(dir, fmt.Sprint(i)), strings.Repeat(fmt.Sprint(i), 300))))
		time.Sleep(5 * time.Millisecond)
		if i == 1 {
			program(t, r, filepath.Join(dir, "0")) // used again
			time.Sleep(5 * time.Millisecond)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		_, total := s.items()
		if total > 1000 {
			t.Errorf("%d bytes", total)
		}
		if i == 2 && (cachedIn(s, sealed[1]) || !cachedIn(s, sealed[0])) {
			t.Error("not the one that was unused for longest was removed")
		}
	}
	if !cachedIn(s, kept) || cachedIn(s, sealed[2]) || !cachedIn(s, sealed[5]) {
		t.Errorf("%v", slices.Collect(func(yield func(bool) bool) {
			for _, x := range sealed {
				yield(cachedIn(s, x))
			}
		}))
	}
}

// A run gives up what it does not use when the cache is full, never what runs.
func TestShed(t *testing.T) {
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 200_000)
	dir := tempDir(t)
	r := newRun(t, s)
	runner, err := r.AddRunner(open(t, copyProgram(t, "true", filepath.Join(tempDir(t), "jail"))))
	if err != nil {
		t.Fatal(err)
	}
	runs := program(t, r, copyProgram(t, "sleep", filepath.Join(dir, "d", "runs")))
	cmd := exec.Command(runs.Path, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var rest []Sealed
	add := func() {
		t.Helper()
		i := len(rest)
		path := write(t, filepath.Join(dir, fmt.Sprint(i)), strings.Repeat(fmt.Sprintf("%06d", i), 5000))
		rest = append(rest, program(t, r, path))
		if lib, err := r.Library(open(t, path)); err != nil || lib.Digest != rest[i].Digest {
			t.Errorf("%+v, %v", lib, err)
		}
	}
	for range 10 {
		add()
	}
	if _, total := s.items(); total < 300_000 || !cachedIn(s, rest[0]) {
		t.Errorf("what was used within a minute is gone: %d bytes", total)
	}
	r.idle = 0
	for range 10 {
		add()
	}
	if _, total := s.items(); total > 230_000 || cachedIn(s, rest[0]) || !cachedIn(s, rest[19]) || !cachedIn(s, runs) {
		t.Errorf("%d bytes, runner %q", total, runner)
	}
	if _, err := os.Lstat(runs.Path); err != nil {
		t.Error("what runs is gone:", err)
	}
	if err := exec.Command(runner).Run(); err != nil {
		t.Error("the runner is gone:", err)
	}
	if again := program(t, r, filepath.Join(dir, "0")); again.Cached || again.Path != rest[0].Path || again.Digest != rest[0].Digest {
		t.Errorf("%+v", again)
	}
	program(t, r, filepath.Join(dir, "19"))
	if to, err := os.Readlink(rest[1].Path); err != nil || to != filepath.Join(dir, "1") {
		t.Errorf("the place of a seal that was given up is %q, %v", to, err)
	}
}

func cachedIn(s *Store, x Sealed) bool {
	_, err := s.root.Lstat(filepath.Join("cache", hex.EncodeToString(x.Digest[:])))
	return err == nil
}

func TestCollect(t *testing.T) {
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 0)
	dir := tempDir(t)
	lives := newRun(t, s)
	kept := program(t, lives, write(t, filepath.Join(dir, "kept"), "kept"))
	r := newRun(t, s)
	program(t, r, write(t, filepath.Join(dir, "freed"), strings.Repeat("x", 1000)))
	r.Close()
	got, err := s.Collect()
	if err != nil || got != (Collected{Freed: 1000, Kept: 4}) {
		t.Errorf("%+v, %v", got, err)
	}
	if read(t, kept.Path) != "kept" {
		t.Error("a living run has lost its seal")
	}
	if again := program(t, newRun(t, s), filepath.Join(dir, "freed")); again.Cached {
		t.Error("it is still cached")
	}
}

// A large file is cloned where the file system can, else copied.
func TestLarge(t *testing.T) {
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	path := write(t, filepath.Join(tempDir(t), "large"), "head")
	if err := os.Truncate(path, cloneSize+1); err != nil {
		t.Fatal(err)
	}
	s := program(t, r, path)
	h := sha256.New()
	h.Write([]byte("head"))
	h.Write(make([]byte, cloneSize+1-4))
	if s.Digest != Digest(h.Sum(nil)) || s.Size != cloneSize+1 || !strings.HasPrefix(read(t, s.Path), "head\x00") {
		t.Errorf("%+v", s)
	}
}

// A runner is the run's own, and once it is closed it runs but can't be read.
func TestRunner(t *testing.T) {
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 0)
	path, err := newRun(t, s).AddRunner(open(t, copyProgram(t, "echo", filepath.Join(tempDir(t), "jail"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := CloseRunner(path); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path, "runs").Output(); err != nil || string(out) != "runs\n" {
		t.Errorf("%q, %v", out, err)
	}
	fi, err := os.Stat(path)
	if err != nil || fi.Mode() != 0o111 || int(rawStat(fi).Gid) != os.Getgid() {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	if left := s.list("cache"); len(left) != 0 {
		t.Errorf("in the cache: %q", left)
	}
}

// A million copies of a few bytes are not kept because they are small.
func TestManySmall(t *testing.T) {
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 0)
	s.most = 100
	for i := range 110 {
		f, err := s.root.Create(fmt.Sprintf("cache/%d", i))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if _, err := s.trim(s.cap); err != nil {
		t.Fatal(err)
	}
	if left := len(s.list("cache")); left != 100 {
		t.Errorf("%d are left", left)
	}
}
