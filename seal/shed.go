package seal

import (
	"encoding/hex"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// idle is how long a run keeps a copy that it does not use, at least. A path that
// Program returned is executed long before.
const idle = time.Minute

// shed gives up copies that this run has and nobody uses, those unused for longest
// first, until want bytes are freed. An agent that builds and tests all day would
// otherwise keep every test it ever ran, out of reach of the cache's cap.
func (r *Run) shed(want int64) {
	r.mirror.mu.Lock()
	defer r.mirror.mu.Unlock()
	for _, o := range r.unused() {
		if want <= 0 {
			return
		}
		if !r.inUse(o) && r.drop(o) == nil {
			want -= o.size
		}
	}
}

// unused lists the copies that were not asked for lately.
func (r *Run) unused() []*object {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*object
	for _, o := range r.ready {
		if time.Since(o.used) > r.idle {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(x, y *object) int { return x.used.Compare(y.used) })
	return out
}

// inUse tells whether a copy is executed, mapped or open: the kernel gives a
// write lease only if nobody else has the file open in any way.
func (r *Run) inUse(o *object) bool {
	f, err := r.home.OpenFile(o.name(), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return true
	}
	defer f.Close() // gives the lease back
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	return err != nil
}

// drop removes every name that this run has for a copy. The original's place in
// the mirror is a link again when its directory is next looked at.
func (r *Run) drop(o *object) error {
	for _, at := range r.mirror.roots {
		if err := r.mirror.drop(at, o); err != nil {
			return err
		}
	}
	if err := r.home.Remove(path.Join(libDir, hex.EncodeToString(o.digest[:]))); err != nil && !isGone(err) {
		return err
	}
	r.mu.Lock()
	delete(r.ready, o.digest)
	r.mu.Unlock()
	return r.home.Remove(o.name())
}

func (m *mirror) drop(at *folder, o *object) error {
	for name, e := range at.entries {
		switch {
		case e.folder != nil:
			if err := m.drop(e.folder, o); err != nil {
				return err
			}
		case e.seal != nil && e.seal.digest == o.digest:
			if err := m.run.home.Remove(path.Join(at.name, name)); err != nil && !isGone(err) {
				return err
			}
			delete(at.entries, name)
			at.trusted = false
		}
	}
	return nil
}
