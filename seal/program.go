package seal

import (
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"syscall"
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

// AddRunner puts a copy of f, jail's own binary, where the jail may execute it. The
// copy is the run's own: see CloseRunner.
func (r *Run) AddRunner(f *os.File) (string, error) {
	syscall.ForkLock.RLock() // see copyOut
	defer syscall.ForkLock.RUnlock()
	name := path.Join(execDir, "jail-runner")
	out, err := r.home.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, f)
	if err = errors.Join(err, out.Chmod(0o500), out.Close()); err != nil {
		return "", err
	}
	return filepath.Join(r.store.path, "runs", r.id, name), nil
}

// CloseRunner takes the right to read a runner, once it has been opened. What can't
// be read can't be dumped: from its first instruction on, the kernel keeps others from
// tracing it. Who may execute it has to be its group too: or the kernel takes it for a
// program of a user namespace further outside, and it is closed to us as well.
func CloseRunner(path string) error {
	if err := os.Chown(path, -1, os.Getgid()); err != nil {
		return err
	}
	return os.Chmod(path, 0o111)
}
