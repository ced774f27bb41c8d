package mounts

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// sealsPoint is where the seals of a run are mounted. Landlock's rule is on the
// directory above it, which is there from the start.
const sealsPoint = plan.SealsDir + "/x"

// SealsPath is the name in the jail of a file of the run's directory.
func SealsPath(rel string) string { return filepath.Join(sealsPoint, rel) }

// stateDir is the nearest directory above Layout.State that was there before
// anything was covered, open: in the jail's view the name may lead elsewhere.
type stateDir struct {
	fd   int
	path string
}

func (l *Layout) openState() error {
	if l.State == "" {
		return nil // nothing is sealed
	}
	for dir := l.State; ; dir = filepath.Dir(dir) {
		fd, err := openDir(dir)
		if err == nil {
			l.state = stateDir{fd, dir}
			return nil
		}
		if dir == "/" || !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
}

// AttachSeals puts the run's directory on the host in its place, to be read and
// executed. It is called once, in the namespace that Enter has built.
func (l *Layout) AttachSeals(dir string, id plan.ID) error {
	rel, err := filepath.Rel(l.state.path, dir)
	if err != nil {
		return err
	}
	at, err := openBelow(l.state.fd, rel, id)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	fd, err := unix.OpenTree(at, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("taking %q: %w", dir, err)
	}
	defer unix.Close(fd)
	// Enter has made noexec what this is a copy of. If the host's own mount is, the
	// flag is locked.
	attr := unix.MountAttr{Attr_set: execFlags, Attr_clr: unix.MOUNT_ATTR_NOEXEC}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("%q is on a file system from which nothing executes: %w", dir, err)
	}
	to, err := openDir(sealsPoint)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	if err := unix.MoveMount(fd, "", to, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("putting %q in place: %w", dir, err)
	}
	return nil
}
