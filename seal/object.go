package seal

import (
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Digest is the SHA-256 of a file.
type Digest = [32]byte

// object is a copy that this run has written or verified.
type object struct {
	digest Digest
	size   int64
	used   time.Time // for the last time, in this run; under Run.mu
}

func (o *object) cacheName() string { return path.Join("cache", hex.EncodeToString(o.digest[:])) }
func (o *object) name() string      { return path.Join(objDir, hex.EncodeToString(o.digest[:])) }

// seal makes sure that obj has a copy of the file, and returns it. cached says
// that nothing was copied.
func (r *Run) seal(f *os.File) (o *object, cached bool, err error) {
	s, err := inspect(f, r.maxSize())
	if err != nil {
		return nil, false, err
	}
	defer s.release()
	if o := r.recall(s); o != nil {
		return o, true, r.refused(o)
	}
	if !s.quiet {
		o, err := r.copy(s)
		return o, false, err
	}
	// Whoever comes first works for all that want the same file in the same state:
	// its lease holds writers off for all of them.
	type result struct {
		o      *object
		cached bool
	}
	got, err, _ := r.flight.Do("file "+string(indexLine(s.id, Digest{})), func() (any, error) {
		o, cached, err := r.make(s)
		return result{o, cached}, err
	})
	if err != nil {
		return nil, false, err
	}
	made := got.(result)
	return made.o, made.cached, nil
}

func (r *Run) maxSize() int64 {
	if r.Options.MaxSize > 0 {
		return r.Options.MaxSize
	}
	return DefaultMaxSize
}

func (r *Run) refused(o *object) error {
	if r.Options.Refuse == nil {
		return nil
	}
	if err := r.Options.Refuse(o.digest, o.size); err != nil {
		return &Refusal{Denied, err}
	}
	return nil
}

// recall is what this run already has of the file.
func (r *Run) recall(s *subject) *object {
	if !s.quiet {
		return nil // its stamps prove nothing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.ready[r.known[s.id]]
	if o != nil {
		o.used = time.Now()
	}
	return o
}

// The index of one run is dropped when it has so many files: a jail can make any
// number of them.
const knownFiles = 1 << 16

func (r *Run) remember(s *subject, d Digest) {
	if !s.quiet || !s.id.settled(s.start) {
		return
	}
	r.mu.Lock()
	if len(r.known) >= knownFiles {
		clear(r.known)
	}
	_, old := r.known[s.id]
	r.known[s.id] = d
	r.mu.Unlock()
	if !old {
		r.store.index.put(s.id, d)
	}
}

// make finds a copy that an earlier run made, or makes one. The subject is quiet.
func (r *Run) make(s *subject) (o *object, cached bool, err error) {
	if o := r.recall(s); o != nil { // somebody was faster
		return o, true, r.refused(o)
	}
	if d, ok := r.store.index.get(s.id); ok {
		o := &object{digest: d, size: s.id.size}
		if err := r.refused(o); err != nil {
			return nil, false, err
		}
		if r.take(o, s) {
			r.remember(s, d)
			return o, true, nil
		}
	}
	if o, err = r.copy(s); err != nil {
		return nil, false, err
	}
	r.remember(s, o.digest)
	return o, false, nil
}

// take hard-links a copy of the cache into obj and verifies it there: whatever
// becomes of the name in the cache, it is the verified inode that is used. A copy
// that is not what the index says is dropped.
func (r *Run) take(o *object, s *subject) bool {
	ok, _, _ := r.flight.Do("take "+o.name(), func() (any, error) {
		if r.has(o) {
			return true, nil
		}
		name := r.temp()
		defer r.home.Remove(name)
		if r.store.root.Link(o.cacheName(), path.Join("runs", r.id, name)) != nil {
			return false, nil
		}
		if !r.verify(o, name, s) {
			r.store.root.Remove(o.cacheName())
			return false, nil
		}
		r.store.touch(o)
		return r.own(o, name) == nil, nil
	})
	return ok.(bool)
}

// own gives what was made or verified its name in obj.
func (r *Run) own(o *object, name string) error {
	if err := r.home.Rename(name, o.name()); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	o.used = time.Now()
	r.ready[o.digest] = o
	return nil
}

// verify tells whether a file is one that this package made, and still a copy of
// the subject. Comparing shows what hashing would, an index that lies besides, and
// takes a fifth of the time.
func (r *Run) verify(o *object, name string, s *subject) bool {
	f, ok := r.openCopy(o, name)
	if !ok {
		return false
	}
	defer f.Close()
	buf := r.buffers.get()
	defer r.buffers.put(buf)
	equal, err := same(f, io.NewSectionReader(s.f, 0, o.size+1), buf)
	return equal && err == nil && !s.changed()
}

// openCopy opens a copy if mode, owner and size are those that copies have.
func (r *Run) openCopy(o *object, name string) (*os.File, bool) {
	f, err := r.home.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	fi, err := f.Stat()
	if err != nil || rawStat(fi).Mode != unix.S_IFREG|0o500 || int(rawStat(fi).Uid) != os.Geteuid() || fi.Size() != o.size {
		f.Close()
		return nil, false
	}
	return f, true
}

// attempts is how often a file that changes meanwhile is copied.
const attempts = 3

// copy copies the file out.
func (r *Run) copy(s *subject) (*object, error) {
	for try := 1; ; try++ {
		o, err := r.copyOnce(s)
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Reason != Changing || try == attempts {
			return o, err
		}
		time.Sleep(settle)
		fi, err := s.f.Stat()
		if err != nil {
			return nil, &Refusal{Unreadable, err}
		}
		if s.start, s.id = time.Now(), identify(rawStat(fi)); s.id.size > r.maxSize() {
			return nil, &Refusal{Reason: TooLarge}
		}
	}
}

func (r *Run) copyOnce(s *subject) (*object, error) {
	name := r.temp()
	buf := r.buffers.get()
	digest, err := copyOut(r.home, name, s, buf)
	r.buffers.put(buf)
	if err != nil {
		return nil, err
	}
	defer r.home.Remove(name)
	if s.changed() {
		return nil, &Refusal{Reason: Changing}
	}
	o := &object{digest: digest, size: s.id.size}
	if err := r.refused(o); err != nil {
		return nil, err
	}
	return o, r.publish(o, name)
}

// publish gives a fresh copy its name in the cache and in obj. A copy of the
// cache that this run has not verified is replaced: verifying costs as much.
func (r *Run) publish(o *object, name string) error {
	if r.has(o) {
		return nil
	}
	second := r.temp()
	if err := r.home.Link(name, second); err != nil {
		return err
	}
	defer r.home.Remove(second)
	if err := r.store.replaceCopy(path.Join("runs", r.id, second), o); err != nil {
		return err
	}
	if err := r.own(o, name); err != nil {
		return err
	}
	if over := r.store.grown(o.size); over > 0 {
		r.shed(over)
		r.store.settleUp()
	}
	return nil
}

// has tells whether obj has that copy already, and that it is used again.
func (r *Run) has(o *object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ready := r.ready[o.digest]
	if ready != nil {
		ready.used = time.Now()
	}
	return ready != nil
}

// replaceCopy gives a copy its name in the cache, whatever has it.
func (s *Store) replaceCopy(from string, o *object) error {
	err := s.root.Rename(from, o.cacheName())
	if err == nil || errors.Is(err, unix.ENOSPC) {
		return err
	}
	s.root.RemoveAll(o.cacheName()) // a directory, put there by somebody
	return s.root.Rename(from, o.cacheName())
}

// touch says that a copy was used: those unused for longest go first.
func (s *Store) touch(o *object) {
	now := time.Now()
	s.root.Chtimes(o.cacheName(), now, now)
}

// isGone tells that somebody else was faster to remove something.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESTALE) }
