package seal

import (
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
)

// Sealed is a copy that this run may execute.
type Sealed struct {
	Path   string // below Run.Dir
	Digest Digest
	Size   int64
	Cached bool // nothing was copied
}

// Where libraries are: no program looks beside them for anything, for the loader
// takes $ORIGIN from the name that it opened.
const libDir = execDir + "/lib"

// Program seals a program. f is a handle of it, open for reading only; original
// is its real path in the jail, which decides where the seal lies and what it
// finds beside itself. With an empty original there is nothing beside it.
//
// Path stays executable until the run ends. When the same original is sealed
// again with other content, Path leads to that, and what runs from the old one
// sees /proc/self/exe as deleted, as it would without jail.
func (r *Run) Program(f *os.File, original string) (Sealed, error) {
	o, cached, err := r.seal(f)
	if err != nil {
		return Sealed{}, err
	}
	if original == "" {
		return r.flat(o, cached)
	}
	at, err := r.mirror.place(o, original)
	if err != nil {
		return Sealed{}, err
	}
	return r.sealed(at, o, cached), nil
}

// Library seals what is to be mapped.
func (r *Run) Library(f *os.File) (Sealed, error) {
	o, cached, err := r.seal(f)
	if err != nil {
		return Sealed{}, err
	}
	return r.flat(o, cached)
}

func (r *Run) sealed(name string, o *object, cached bool) Sealed {
	return Sealed{Path: filepath.Join(r.store.path, "runs", r.id, name), Digest: o.digest, Size: o.size, Cached: cached}
}

// flat links a copy under its digest.
func (r *Run) flat(o *object, cached bool) (Sealed, error) {
	name := path.Join(libDir, hex.EncodeToString(o.digest[:]))
	if err := r.home.Link(o.name(), name); err != nil && !os.IsExist(err) {
		return Sealed{}, err
	}
	return r.sealed(name, o, cached), nil
}

// AddRunner puts a copy of f, jail's own binary, where the jail may execute it.
// The jail can't write f, so none of the refusals apply to it, and an earlier
// copy is compared with f itself, which costs less than hashing.
func (r *Run) AddRunner(f *os.File) (string, error) {
	fi, err := f.Stat()
	if err != nil {
		return "", err
	}
	s := &subject{f: f, id: identify(rawStat(fi))}
	o, ok := r.oldRunner(s)
	if !ok {
		if o, err = r.newRunner(s); err != nil {
			return "", err
		}
	}
	name := path.Join(execDir, "jail-"+hex.EncodeToString(o.digest[:8]))
	if err := r.home.Link(o.name(), name); err != nil && !os.IsExist(err) {
		return "", err
	}
	return filepath.Join(r.store.path, "runs", r.id, name), nil
}

// oldRunner takes the copy that an earlier run made.
func (r *Run) oldRunner(s *subject) (*object, bool) {
	digest, ok := r.store.index.get(s.id)
	if !ok {
		return nil, false
	}
	o := &object{digest: digest, size: s.id.size, pinned: true}
	name := r.temp()
	defer r.home.Remove(name)
	if r.store.root.Link(o.cacheName(), path.Join("runs", r.id, name)) != nil {
		return nil, false
	}
	copied, ok := r.openCopy(o, name)
	if !ok {
		return nil, false
	}
	defer copied.Close()
	buf := r.buffers.get()
	defer r.buffers.put(buf)
	equal, err := same(io.NewSectionReader(s.f, 0, s.id.size+1), copied, buf)
	if err != nil || !equal {
		return nil, false
	}
	r.store.touch(o)
	return o, r.own(o, name) == nil
}

func (r *Run) newRunner(s *subject) (*object, error) {
	name := r.temp()
	buf := r.buffers.get()
	digest, err := copyOut(r.home, name, s, buf)
	r.buffers.put(buf)
	if err != nil {
		return nil, err
	}
	defer r.home.Remove(name)
	if s.changed() {
		return nil, errors.New("jail's own binary is being replaced")
	}
	o := &object{digest: digest, size: s.id.size, pinned: true}
	r.store.index.put(s.id, digest)
	return o, r.publish(o, name)
}
