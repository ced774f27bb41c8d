package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// seenFile is a regular file that a walk has met.
type seenFile struct {
	dir  string
	name string
	in   ID // the directory, which has one identity in all its mounts
	stat *unix.Stat_t
}

func (f seenFile) path() string { return f.dir + "/" + f.name }

func (f seenFile) id() ID { return ID{Dev: f.stat.Dev, Ino: f.stat.Ino} }

// walker looks at the regular files beneath a directory.
type walker struct {
	uid int
	f   func(seenFile) error
}

// walkFiles calls f for each regular file beneath root until it returns an error.
// What another user keeps closed is passed over: the jail can't open it either.
// What this user has closed is an error, since whoever owns a directory can open it
// again; so is a path that is too long to be looked at.
func walkFiles(root string, uid int, f func(seenFile) error) error {
	var st unix.Stat_t
	if unix.Lstat(root, &st) != nil {
		return nil
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return f(seenFile{filepath.Dir(root), filepath.Base(root), identity(filepath.Dir(root)), &st})
	case unix.S_IFDIR:
		return walker{uid, f}.dir(root)
	}
	return nil
}

// dir looks files up relative to the open directory, which halves the time.
func (w walker) dir(dir string) error {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return w.closed(dir, err)
	}
	entries, err := w.files(d, dir)
	d.Close() // before going deeper: depth must not cost descriptors
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := w.dir(dir + "/" + e.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (w walker) files(d *os.File, dir string) ([]fs.DirEntry, error) {
	entries, err := d.ReadDir(-1)
	if err != nil && len(entries) == 0 {
		return nil, nil // removed meanwhile
	}
	fd := int(d.Fd())
	var own unix.Stat_t
	if err := unix.Fstat(fd, &own); err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		var st unix.Stat_t
		err := unix.Fstatat(fd, e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case errors.Is(err, unix.EACCES):
			return nil, w.closed(dir, err)
		case err != nil:
			continue
		}
		if err := w.f(seenFile{dir, e.Name(), ID{Dev: own.Dev, Ino: own.Ino}, &st}); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// closed decides what an error at a directory means for the proof.
func (w walker) closed(dir string, err error) error {
	var hint string
	switch {
	case errors.Is(err, unix.ENAMETOOLONG):
		hint = "remove what lies so deep, or grant less"
	case errors.Is(err, unix.EACCES) && ownedBy(dir, w.uid):
		hint = fmt.Sprintf("chmod u+rx %q, or grant less", dir)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil
	default:
		hint = "grant less"
	}
	if len(dir) > 200 {
		dir = dir[:200] + "..."
	}
	return &Problem{
		What: fmt.Sprintf("%q can't be looked through for hard links: %v; W^X is not proved", dir, Cause(err)),
		Hint: hint,
	}
}

// identity of what is there; zero if nothing is.
func identity(path string) ID {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return ID{}
	}
	return ID{Dev: st.Dev, Ino: st.Ino}
}
