package mounts

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// takenAway are the flags of what is reopened with an access.
func takenAway(a plan.Access) (set uint64) {
	if a&plan.Write == 0 {
		set |= unix.MOUNT_ATTR_RDONLY
	}
	if a&plan.Exec == 0 {
		set |= unix.MOUNT_ATTR_NOEXEC
	}
	return set
}

// nothingFor is what hides a path: a directory in which something is reopened
// needs the way there, which can be gone and not be listed.
func (l *Layout) nothingFor(c Cover, at int) (int, error) {
	var points []Point
	for _, r := range l.Covers {
		if r.Kind == Reopen && within(r.Path, c.Path) {
			points = append(points, Point{Path: r.Path, Dir: r.Dir})
		}
	}
	if len(points) == 0 {
		source, err := l.empty(at)
		if err != nil {
			return -1, err
		}
		defer unix.Close(source)
		return clone(source, restFlags)
	}
	fd, err := memory(0)
	if err != nil {
		return -1, err
	}
	for _, p := range points {
		if err := point(fd, p, c.Path); err != nil {
			return -1, err
		}
	}
	if err := passable(fd, points, c.Path); err != nil {
		return -1, err
	}
	return fd, setFlags(fd, "", restFlags)
}

// passable leaves nothing of directories but that one can go through them.
func passable(root int, points []Point, top string) error {
	for _, p := range points {
		for dir := filepath.Dir(p.Path); within(dir, top); dir = filepath.Dir(dir) {
			rel, err := filepath.Rel(top, dir)
			if err != nil {
				return err
			}
			if err := os.Chmod(filepath.Join(fmt.Sprintf("/proc/self/fd/%d", root), rel), 0o111); err != nil {
				return err
			}
		}
	}
	return nil
}
