package seal

import (
	"encoding/hex"
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
// The jail can't write f: no lease is needed.
func (r *Run) AddRunner(f *os.File) (string, error) {
	fi, err := f.Stat()
	if err != nil {
		return "", err
	}
	s := &subject{f: f, id: identify(rawStat(fi))}
	digest, known := r.store.index.get(s.id)
	o := &object{digest: digest, size: s.id.size}
	if !known || !r.take(o, s) {
		if o, err = r.copy(s); err != nil {
			return "", err
		}
		r.store.index.put(s.id, o.digest)
	}
	name := path.Join(execDir, "jail-"+hex.EncodeToString(o.digest[:8]))
	if err := r.home.Link(o.name(), name); err != nil && !os.IsExist(err) {
		return "", err
	}
	r.pin(o.digest)
	return filepath.Join(r.store.path, "runs", r.id, name), nil
}

// pin keeps a copy for as long as the run lives.
func (r *Run) pin(d Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready[d].pinned = true
}
