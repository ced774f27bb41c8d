package mounts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// Enter builds the layout in the calling process's mount namespace, which must
// be its own. On error the namespace is of no use any more.
//
// Clones of the trees that differ are taken first, with their flags; then all
// that is there becomes read-only and noexec; then the clones are attached over
// the places they came from. No moment has a tree with more rights than the
// host gives it.
func (l *Layout) Enter() error {
	var err error
	if l.Hides() {
		// /tmp is covered later, but this must still be found, also when a cover
		// has to be put back: it stays open.
		if l.nothing, err = openDir(l.Nothing); err != nil {
			return err
		}
	}
	if err := l.openState(); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := l.makeCopies(); err != nil {
		return err
	}
	clones, err := l.clone()
	if err != nil {
		return err
	}
	privates, err := l.privates()
	if err != nil {
		return err
	}
	if err := setFlags(unix.AT_FDCWD, "/", restFlags); err != nil {
		return fmt.Errorf("making the file system read-only: %w", err)
	}
	if err := attachAll(append(privates, clones...)); err != nil {
		return err
	}
	if err := l.covers(); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting a fresh /proc: %w", err)
	}
	return nil
}

// detached is a tree that waits for its place.
type detached struct {
	fd int
	Tree
}

// attachAll puts trees in place, outer before inner.
func attachAll(trees []detached) error {
	slices.SortStableFunc(trees, func(a, b detached) int { return strings.Compare(a.Path, b.Path) })
	for _, t := range trees {
		if err := attach(t.fd, t.Path, t.ID); err != nil {
			return err
		}
	}
	return nil
}

// openDir opens a directory of jail's own on the host.
func openDir(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("opening %q: %w", path, err)
	}
	return fd, nil
}

// clone takes a detached copy of each tree, identified by its inode: a path that
// was swapped since the plan was made is an error.
func (l *Layout) clone() ([]detached, error) {
	var out []detached
	for _, t := range l.Trees {
		at, err := open(t.Path, t.ID)
		if err != nil {
			return nil, err
		}
		fd, err := clone(at, t.Set)
		unix.Close(at)
		if err != nil {
			return nil, fmt.Errorf("taking %q: %w", t.Path, err)
		}
		out = append(out, detached{fd, t})
	}
	return out, nil
}

func clone(at int, set uint64) (int, error) {
	fd, err := unix.OpenTree(at, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, err
	}
	if err := setFlags(fd, "", set); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func setFlags(at int, path string, set uint64) error {
	return unix.MountSetattr(at, path, unix.AT_RECURSIVE|unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: set})
}

// privates makes the private directories, with the mount points in them: two
// are one directory on the host, two are in memory.
func (l *Layout) privates() ([]detached, error) {
	var out []detached
	at, err := openDir(l.Temp)
	if err != nil {
		return nil, err
	}
	defer unix.Close(at)
	for _, path := range []string{tmp, varTmp} {
		fd, err := clone(at, writeFlags)
		if err != nil {
			return nil, fmt.Errorf("taking the private %s: %w", path, err)
		}
		out = append(out, detached{fd, Tree{Path: path}})
	}
	for _, path := range []string{shm, run} {
		fd, err := memory(writeFlags)
		if err != nil {
			return nil, fmt.Errorf("a private file system in memory: %w", err)
		}
		out = append(out, detached{fd, Tree{Path: path}})
	}
	for _, p := range l.Points {
		dir, _ := private(p.Path)
		i := slices.IndexFunc(out, func(d detached) bool { return d.Path == dir })
		if err := point(out[i].fd, p, dir); err != nil {
			return nil, fmt.Errorf("making a place for %q: %w", p.Path, err)
		}
	}
	// /run only holds what grants put there.
	return out, setFlags(out[len(out)-1].fd, "", restFlags)
}

// memory makes a detached tmpfs.
func memory(flags uint64) (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigSetString(fs, "mode", "0755"); err != nil {
		return -1, err
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, int(flags))
}

// point makes an empty file or directory to mount on, below a private directory
// that nothing untrusted has seen yet.
func point(root int, p Point, dir string) error {
	rel, err := filepath.Rel(dir, p.Path)
	if err != nil {
		return err
	}
	base := fmt.Sprintf("/proc/self/fd/%d", root)
	path := filepath.Join(base, rel)
	if p.Dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// attach puts a detached tree over path. id is what the plan has seen there; in
// a private directory, whose content is ours, it is not asked for.
func attach(fd int, path string, id plan.ID) error {
	if _, ours := private(path); ours {
		id = plan.ID{}
	}
	at, err := open(path, id)
	if errors.Is(err, unix.ENOENT) && id == (plan.ID{}) {
		unix.Close(fd)
		return nil // a host without /var/tmp or /run
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	defer unix.Close(fd)
	if err := unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("putting %q in place: %w", path, err)
	}
	return nil
}

// open opens a real path without following links and compares its identity.
func open(path string, id plan.ID) (int, error) {
	return openBelow(unix.AT_FDCWD, path, id)
}

func openBelow(dir int, path string, id plan.ID) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	if dir != unix.AT_FDCWD {
		how.Resolve |= unix.RESOLVE_BENEATH
	}
	fd, err := unix.Openat2(dir, path, &how)
	if err != nil {
		return -1, fmt.Errorf("opening %q: %w", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("opening %q: %w", path, err)
	}
	if id != (plan.ID{}) && (plan.ID{Dev: st.Dev, Ino: st.Ino}) != id {
		unix.Close(fd)
		return -1, fmt.Errorf("%q was replaced while jail was starting", path)
	}
	return fd, nil
}

// covers puts the carve-outs in place, outer before inner, and gives back what is
// reopened, as it was before.
func (l *Layout) covers() error {
	before := map[string]int{}
	for _, c := range l.Covers {
		if c.Kind != Reopen {
			continue
		}
		at, err := open(c.Path, plan.ID{})
		if err != nil {
			return err
		}
		before[c.Path], err = clone(at, c.Set)
		unix.Close(at)
		if err != nil {
			return fmt.Errorf("taking %q: %w", c.Path, err)
		}
	}
	for _, c := range l.Covers {
		var err error
		if c.Kind == Reopen {
			err = attach(before[c.Path], c.Path, plan.ID{})
		} else {
			err = l.Cover(c)
		}
		if err != nil {
			return fmt.Errorf("covering %q: %w", c.Path, err)
		}
	}
	return nil
}

// Cover puts one carve-out in place. A kernel that takes no link for a mount
// leaves a file protected that should have been a copy.
func (l *Layout) Cover(c Cover) error {
	err := l.put(c)
	if c.Kind == Copy && errors.Is(err, unix.EINVAL) {
		return l.put(Cover{Path: c.Path, Kind: Protect})
	}
	return err
}

func (l *Layout) put(c Cover) error {
	at, err := open(c.Path, plan.ID{})
	if err != nil {
		return err
	}
	defer unix.Close(at)
	var fd int
	switch c.Kind {
	case Hide:
		fd, err = l.nothingFor(c, at)
	case Copy:
		fd, err = l.link(c)
	case Protect:
		// What may be executed there still may: only writing is taken away.
		fd, err = clone(at, unix.MOUNT_ATTR_RDONLY)
	default:
		fd, err = clone(at, 0)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// empty opens what hides a file or a directory: one of its kind, empty and
// without mode bits, from the directory on the host that was opened at start.
func (l *Layout) empty(at int) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return -1, err
	}
	name := "nofile"
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		name = "nodir"
	}
	return unix.Openat(l.nothing, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}
