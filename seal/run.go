package seal

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"
)

// DefaultMaxSize is the largest file that is sealed if nobody says otherwise.
const DefaultMaxSize = 1 << 30

// Options is what a run's owner decides. It is set before the first seal.
type Options struct {
	// MaxSize is the largest file that is sealed, in bytes; 0: DefaultMaxSize.
	MaxSize int64
	// Refuse is asked before anything with this digest and size can be executed
	// in this run, each time. Its error becomes a Refusal with Denied.
	Refuse func(Digest, int64) error
	// Root is the root directory that originals' paths are meant in, the jail's:
	// its /tmp is another one. nil: jail's own.
	Root *os.File
	// MayList tells whether the jail itself may list a directory. Neighbours are
	// linked from no other, for their names would tell the jail what is there.
	// nil: from none.
	MayList func(dir string) bool
}

// Run is one run of jail: what it may execute, and its journal. All methods may
// be called concurrently.
type Run struct {
	Options Options

	store   *Store
	id      string
	home    *os.Root // runs/ID
	lock    *os.File // the same directory, locked while this run lives
	journal *Journal
	buffers buffers
	names   atomic.Uint64 // of what is being made
	idle    time.Duration // how long unused copies are kept, at least

	flight singleflight.Group
	mu     sync.Mutex
	known  map[fileID]Digest
	ready  map[Digest]*object // what is in obj, verified

	mirror mirror
}

// The directories of a run.
const (
	execDir = "x"   // what the jail sees
	objDir  = "obj" // what this run has verified
	tmpDir  = "tmp" // what is being made
)

// NewRun makes the directory of a run and removes those of runs that have died.
func (s *Store) NewRun() (*Run, error) {
	r := &Run{store: s, idle: idle, buffers: newBuffers(), known: map[fileID]Digest{}, ready: map[Digest]*object{}}
	r.mirror = mirror{run: r, most: maxNeighbours}
	if err := r.claim(); err != nil {
		return nil, err
	}
	if err := r.furnish(); err != nil {
		r.Close()
		return nil, err
	}
	s.sweep()
	s.dropJournals()
	return r, nil
}

// claim makes the directory and locks it. Another run that sweeps may remove it
// in between: then it is made anew.
func (r *Run) claim() error {
	for range 100 {
		r.id = newID(time.Now())
		name := filepath.Join("runs", r.id)
		if err := r.store.root.Mkdir(name, 0o700); err != nil {
			return err
		}
		home, err := r.store.root.OpenRoot(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		lock, err := lockDir(home)
		if err == nil {
			r.home, r.lock = home, lock
			return nil
		}
		home.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.New("no directory for this run could be locked")
}

// newID sorts by time.
func newID(now time.Time) string {
	random := make([]byte, 4)
	rand.Read(random)
	return now.UTC().Format("20060102-150405.000") + "-" + hex.EncodeToString(random)
}

// lockDir locks a directory that is still there. The lock is gone when the last
// holder of the descriptor is, however it ends.
func lockDir(dir *os.Root) (*os.File, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		var fi os.FileInfo
		if fi, err = f.Stat(); err == nil && rawStat(fi).Nlink == 0 {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (r *Run) furnish() error {
	for _, name := range []string{execDir, objDir, tmpDir, libDir} {
		if err := r.home.Mkdir(name, 0o700); err != nil {
			return err
		}
	}
	var err error
	r.journal, err = r.store.newJournal(r.id)
	return err
}

// sweep removes the directories of runs that nobody holds a lock on: they were
// killed. What can't be removed now is tried again by the next run.
func (s *Store) sweep() {
	for _, name := range s.list("runs") {
		name = filepath.Join("runs", name)
		dir, err := s.root.OpenRoot(name)
		if err != nil {
			continue
		}
		if lock, err := lockDir(dir); err == nil {
			s.root.RemoveAll(name)
			lock.Close()
		}
		dir.Close()
	}
}

// list names what is in a directory of the store.
func (s *Store) list(dir string) []string {
	f, err := s.root.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	return names
}

// Dir is the directory that the jail sees and may execute: what this run sealed,
// the runner, and links to the neighbours of programs.
func (r *Run) Dir() string { return filepath.Join(r.store.path, "runs", r.id, execDir) }

// ID names the run and its journal.
func (r *Run) ID() string { return r.id }

// Journal is where seals and refusals are recorded.
func (r *Run) Journal() *Journal { return r.journal }

// Close removes the run's directory, and what in the cache only this run kept
// above the cap. The journal stays.
func (r *Run) Close() error {
	err := r.store.root.RemoveAll(filepath.Join("runs", r.id))
	if r.journal != nil {
		err = errors.Join(err, r.journal.close())
	}
	r.store.settleUp()
	return errors.Join(err, r.home.Close(), r.lock.Close())
}

// temp is a fresh name in the directory for what is being made.
func (r *Run) temp() string { return fmt.Sprintf("%s/%d", tmpDir, r.names.Add(1)) }
