package seal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openStore opens a store for the time of the test.
func openStore(t testing.TB, dir string, capBytes int64) *Store {
	t.Helper()
	s, err := Open(dir, capBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// newRun starts a run that may list everything.
func newRun(t testing.TB, s *Store) *Run {
	t.Helper()
	r, err := s.NewRun()
	if err != nil {
		t.Fatal(err)
	}
	r.Options.MayList = func(string) bool { return true }
	t.Cleanup(func() { r.Close() })
	return r
}

// tempDir is a real path.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// write makes an executable file, old enough for its stamps to be trusted.
func write(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	age(t, path)
	return path
}

// age waits until the stamps of a file are settled.
func age(t testing.TB, path string) {
	t.Helper()
	for {
		fi, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if identify(rawStat(fi)).settled(time.Now()) {
			return
		}
		time.Sleep(settle / 4)
	}
}

// copyProgram puts a program of the system somewhere else.
func copyProgram(t testing.TB, name, to string) string {
	t.Helper()
	from, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, to, string(text))
}

func open(t testing.TB, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func program(t testing.TB, r *Run, path string) Sealed {
	t.Helper()
	s, err := r.Program(open(t, path), path)
	if err != nil {
		t.Fatalf("%q: %v", path, err)
	}
	return s
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func inode(t testing.TB, path string) uint64 {
	t.Helper()
	fi, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return rawStat(fi).Ino
}

func wantReason(t *testing.T, err error, want Reason) {
	t.Helper()
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Reason != want {
		t.Errorf("got %v, want a refusal: %s", err, want)
	}
}

func TestProgram(t *testing.T) {
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	path := copyProgram(t, "echo", filepath.Join(tempDir(t), "a.out"))
	first, second := program(t, r, path), program(t, r, path)
	if first.Cached || !second.Cached || first.Path != second.Path {
		t.Errorf("first %+v, second %+v", first, second)
	}
	text := read(t, path)
	if first.Digest != sha256.Sum256([]byte(text)) || first.Size != int64(len(text)) {
		t.Errorf("the digest is %x", first.Digest)
	}
	if !strings.HasPrefix(first.Path, r.Dir()+"/") {
		t.Errorf("%q is not in %q", first.Path, r.Dir())
	}
	fi, err := os.Lstat(first.Path)
	if err != nil || fi.Mode() != 0o500 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	if out, err := exec.Command(first.Path, "sealed").CombinedOutput(); err != nil || string(out) != "sealed\n" {
		t.Errorf("%q, %v", out, err)
	}
	write(t, path, "something else")
	if inode(t, first.Path) == inode(t, path) || read(t, first.Path) != text {
		t.Error("writing the original changed the seal")
	}
}

func TestLibrary(t *testing.T) {
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	path := write(t, filepath.Join(tempDir(t), "x.so"), "library")
	s, err := r.Library(open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.Library(open(t, path)); err != nil || !again.Cached || again.Path != s.Path {
		t.Errorf("%+v, %v", again, err)
	}
	if read(t, s.Path) != "library" {
		t.Error("it is something else")
	}
}

func TestRefusals(t *testing.T) {
	dir := tempDir(t)
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	r.Options.MaxSize = 100
	denied := errors.New("git is denied")
	r.Options.Refuse = func(d Digest, size int64) error {
		if d == sha256.Sum256([]byte("git")) && size == 3 {
			return denied
		}
		return nil
	}
	large := write(t, filepath.Join(dir, "large"), strings.Repeat("x", 101))
	setuid, setgid := write(t, filepath.Join(dir, "setuid"), "x"), write(t, filepath.Join(dir, "setgid"), "x")
	for path, mode := range map[string]os.FileMode{setuid: 0o755 | os.ModeSetuid, setgid: 0o755 | os.ModeSetgid} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]Reason{
		large: TooLarge, setuid: SetID, setgid: SetID, dir: NotRegular, "/dev/null": NotRegular,
		write(t, filepath.Join(dir, "git"), "git"):     Denied,
		write(t, filepath.Join(dir, "another"), "git"): Denied, // the same bytes
	} {
		for range 2 { // the second time too
			_, err := r.Program(open(t, path), path)
			wantReason(t, err, want)
			_, err = r.Library(open(t, path))
			wantReason(t, err, want)
			if want == Denied && !errors.Is(err, denied) {
				t.Errorf("%v does not say why", err)
			}
		}
	}
	handle, err := unix.Open(filepath.Join(dir, "git"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(handle)
	_, err = r.Library(os.NewFile(uintptr(handle), "handle"))
	wantReason(t, err, Unreadable)
	if left := everything(t, r.store.path); len(left) != 0 {
		t.Errorf("what was refused is kept: %q", left)
	}
}

// everything lists the files below a store, but for journals and the index.
func everything(t testing.TB, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, journalSuffix) && d.Name() != indexName {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A digest is refused in the run that refuses it, whatever other runs sealed.
func TestRefusalOfCached(t *testing.T) {
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 0)
	path := write(t, filepath.Join(tempDir(t), "git"), "git")
	program(t, newRun(t, s), path)
	r := newRun(t, s)
	r.Options.Refuse = func(Digest, int64) error { return errors.New("no") }
	_, err := r.Program(open(t, path), path)
	wantReason(t, err, Denied)
	if left := everything(t, filepath.Dir(r.Dir())); len(left) != 0 {
		t.Errorf("it is there all the same: %q", left)
	}
}

func TestOpenForWriting(t *testing.T) {
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	path := write(t, filepath.Join(tempDir(t), "a.out"), strings.Repeat("x", 4096))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Program(open(t, path), path)
	wantReason(t, err, Busy)
	if !errors.Is(err, syscall.ETXTBSY) {
		t.Errorf("%v is not ETXTBSY", err)
	}
	// A mapping writes after its descriptor is closed.
	mapping, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	_, err = r.Program(open(t, path), path)
	wantReason(t, err, Busy)
	mapping[0] = 'y'
	if err := unix.Munmap(mapping); err != nil {
		t.Fatal(err)
	}
	if s := program(t, r, path); read(t, s.Path)[0] != 'y' {
		t.Error("an older state was sealed")
	}
	// Also what is cached.
	age(t, path)
	program(t, r, path)
	if f, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = r.Program(open(t, path), path)
	wantReason(t, err, Busy)
}

// While a file is copied, writers wait, and we are not told.
func TestLeaseHoldsWritersOff(t *testing.T) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGIO)
	defer signal.Stop(told)
	path := write(t, filepath.Join(tempDir(t), "a.out"), "x")
	s, err := inspect(open(t, path), 100)
	if err != nil || !s.quiet {
		t.Fatal(s, err)
	}
	if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("opened for writing: %d, %v", fd, err)
	}
	s.release()
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	// SIGIO would be there first, and the channel full.
	signal.Notify(told, unix.SIGPWR)
	unix.Kill(os.Getpid(), unix.SIGPWR)
	if got := <-told; got != unix.SIGPWR {
		t.Errorf("got %v", got)
	}
}

// Without leases, a file that changes under the copy is refused, or copied again.
func TestChanging(t *testing.T) {
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	path := write(t, filepath.Join(tempDir(t), "a.out"), "old")
	s, err := inspect(open(t, path), 100)
	if err != nil {
		t.Fatal(err)
	}
	s.release()
	s.quiet = false
	write(t, path, "new and longer")
	_, err = r.copyOnce(s)
	wantReason(t, err, Changing)
	write(t, path, "new")
	_, err = r.copyOnce(s)
	wantReason(t, err, Changing)
	if left := everything(t, r.store.path); len(left) != 0 {
		t.Errorf("kept: %q", left)
	}
	if o, err := r.copy(s); err != nil || o.digest != sha256.Sum256([]byte("new")) {
		t.Errorf("%v, %v", o, err)
	}
	if len(r.known) != 0 {
		t.Error("a file without a lease is remembered")
	}
}

// What was just written may be written again within one tick of the clock.
func TestUnsettledIsNotRemembered(t *testing.T) {
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	path := filepath.Join(tempDir(t), "a.out")
	for i := range 200 {
		want := fmt.Sprintf("content %04d", i)
		if err := os.WriteFile(path, []byte(want), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, program(t, r, path).Path); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// Kernels before 6.13 stamp with a clock that ticks every 1 to 10 ms.
func TestSettled(t *testing.T) {
	r := newRun(t, openStore(t, filepath.Join(tempDir(t), "seal"), 0))
	now := time.Now()
	for age, want := range map[time.Duration]bool{-time.Second: false, 0: false, 10 * time.Millisecond: false, 30 * time.Millisecond: true} {
		s := &subject{quiet: true, start: now, id: fileID{ctime: now.Add(-age).UnixNano()}}
		r.remember(s, Digest{1})
		_, known := r.known[s.id]
		_, indexed := r.store.index.get(s.id)
		if s.quiet = false; known != want || indexed != want || r.recall(s) != nil {
			t.Errorf("%v old: known %v, indexed %v", age, known, indexed)
		}
	}
}
