package mounts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// Layout is what Enter builds, as data.
type Layout struct {
	// Temp is the directory on the host that becomes /tmp and /var/tmp.
	Temp string
	// Nothing is a directory on the host that MakeNothing has filled: what
	// hides things. It is needed only if something is hidden.
	Nothing string
	nothing int // open

	// State is jail's own directory on the host, below which AttachSeals finds what
	// it puts in place. It need not be there yet; empty if nothing is sealed.
	State string
	state stateDir

	Trees  []Tree  // what differs from the rest, outer before inner
	Covers []Cover // carve-outs, pins of their parents before them
	Points []Point // mount points to be made in private directories
}

// Tree is a part of the file system that is put back over itself with other
// flags.
type Tree struct {
	Path string
	ID   plan.ID
	Set  uint64 // MOUNT_ATTR_*
}

// Cover is a carve-out or a pin: Path is mounted on itself, or something empty
// on Path.
type Cover struct {
	Path string
	Kind Kind
	// Of Reopen: what is taken away all the same, and what there is.
	Set uint64
	Dir bool
}

// Kind of a cover.
type Kind int

// The kinds of cover.
const (
	Pin     Kind = iota // mounted on itself, so that it can't be renamed
	Protect             // mounted on itself, read-only
	Hide                // covered by something empty that nobody may read
	Copy                // covered by a link to a copy that is the jail's own
	Reopen              // inside a carve-out: what was there before the cover
)

func (k Kind) String() string {
	return [...]string{"held in place", "protected", "hidden", "copied", "reopened"}[k]
}

// Point is a mount point in a private directory.
type Point struct {
	Path string
	Dir  bool
}

// Private directories: what lies there on the host is not seen, but for grants.
const (
	tmp    = "/tmp"
	varTmp = "/var/tmp"
	shm    = "/dev/shm"
	run    = "/run"
	dev    = "/dev"
)

// within tells whether path is dir or lies beneath it.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// private returns the private directory above path, if there is one.
func private(path string) (string, bool) {
	for _, dir := range []string{tmp, varTmp, shm, run} {
		if within(path, dir) {
			return dir, true
		}
	}
	return "", false
}

const (
	writeFlags  = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	deviceFlags = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY // devices are written all the same
	execFlags   = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_RDONLY
	learnFlags  = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	restFlags   = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY
)

// Hides tells whether something is hidden.
func (l Layout) Hides() bool {
	return slices.ContainsFunc(l.Covers, func(c Cover) bool { return c.Kind == Hide })
}

// hidden tells whether path lies in something that is hidden, and not in what is
// reopened there.
func (l Layout) hidden(path string) bool {
	var nearest Cover
	for _, c := range l.Covers {
		if (c.Kind == Hide || c.Kind == Reopen) && within(path, c.Path) && len(c.Path) > len(nearest.Path) {
			nearest = c
		}
	}
	return nearest.Kind == Hide
}

// Compile decides which trees get which flags. A grant inside another of the
// same kind needs no mount of its own: rename and link work within one mount
// only.
func Compile(p plan.Plan, temp string) Layout {
	// Devices stay where they are: a pseudo terminal is found beside the very
	// /dev/ptmx that was opened. Which of them may be used is Landlock's to say.
	l := Layout{Temp: temp, State: p.State, Trees: []Tree{{Path: dev, Set: deviceFlags}}}
	for g := range p.Grants() { // in the order of paths: outer before inner
		if g.Path == plan.SealsDir {
			l.Points = append(l.Points, Point{Path: sealsPoint, Dir: true})
		}
		dir, hidden := private(g.Path)
		if made(g.Path) || !hidden && within(g.Path, dev) {
			continue
		}
		flags := flagsOf(g)
		outer, inside := l.around(g.Path)
		if hidden && !strings.HasPrefix(outer.Path, dir+"/") {
			inside = false // what is around a private directory does not show in it
		}
		// A grant never takes away: reading inside a write tree stays writing.
		if inside && (outer.Set == flags || flags == restFlags) || !inside && !hidden && flags == restFlags {
			continue
		}
		if inside && flags == execFlags {
			l.pin(g.Path, outer)
		}
		l.Trees = append(l.Trees, Tree{Path: g.Path, ID: g.ID, Set: flags})
		if !hidden || g.Path == dir {
			continue
		}
		if t, ok := l.around(filepath.Dir(g.Path)); !ok || !strings.HasPrefix(t.Path, dir+"/") {
			l.Points = append(l.Points, Point{Path: g.Path, Dir: g.Dir})
		}
	}
	l.cover(p)
	return l
}

// pin lists the directories between a path and the write tree around it. If one
// could be renamed, another could be planted in its place: a new .git, or, for a
// later run, a new exec tree.
func (l *Layout) pin(path string, outer Tree) {
	for dir := filepath.Dir(path); dir != outer.Path && dir != "/"; dir = filepath.Dir(dir) {
		if pin := (Cover{Path: dir, Kind: Pin}); !slices.Contains(l.Covers, pin) {
			l.Covers = append(l.Covers, pin)
		}
	}
}

// made are the paths that Enter makes anew; their grants are for Landlock.
func made(path string) bool {
	return path == tmp || path == varTmp || path == shm || within(path, "/proc") || path == plan.SealsDir
}

// Adapt changes the grants as the layout changes the file system: the private
// directories that this host has may be written, /proc is another one, and what
// is hidden is granted to nobody.
func (l Layout) Adapt(p plan.Plan) plan.Plan {
	var dirs []string
	for _, dir := range []string{tmp, varTmp, shm} {
		if fi, err := os.Lstat(dir); err == nil && fi.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return p.WithPrivate(dirs, made).Without(l.hidden)
}

func flagsOf(g plan.Grant) uint64 {
	switch {
	case g.Access&plan.Write != 0 && g.Access&plan.Exec != 0: // no plan but a permissive one has such a grant
		return learnFlags
	case g.Access&plan.Exec != 0, g.Load:
		return execFlags
	case g.Access&plan.Write != 0:
		return writeFlags
	}
	return restFlags
}

// around is the innermost tree that has path in it.
func (l Layout) around(path string) (Tree, bool) {
	for _, t := range slices.Backward(l.Trees) {
		if within(path, t.Path) {
			return t, true
		}
	}
	return Tree{}, false
}

// cover lists the carve-outs that grants would open. In a write tree each
// directory on the way is pinned: a mount on .git/config alone falls to
// renaming .git and making a new one.
func (l *Layout) cover(p plan.Plan) {
	for _, c := range p.Carves {
		if !c.Open() || c.Glob {
			continue
		}
		kind := Protect
		switch {
		case c.Hide:
			kind = Hide
		case c.Copy:
			kind = Copy
		}
		if t, ok := l.around(c.Path); ok && t.Set&unix.MOUNT_ATTR_RDONLY == 0 {
			l.pin(c.Path, t)
		}
		l.Covers = append(l.Covers, Cover{Path: c.Path, Kind: kind})
	}
	for _, r := range p.Reopened {
		if slices.ContainsFunc(l.Covers, func(c Cover) bool { return c.Kind != Pin && within(r.Path, c.Path) }) {
			l.Covers = append(l.Covers, Cover{Path: r.Path, Kind: Reopen, Set: takenAway(r.Access), Dir: r.Dir})
		}
	}
	// What lies in something hidden is gone already.
	l.Covers = slices.DeleteFunc(l.Covers, func(c Cover) bool { return c.Kind != Reopen && l.hidden(filepath.Dir(c.Path)) })
	slices.SortStableFunc(l.Covers, func(a, b Cover) int { return strings.Compare(a.Path, b.Path) })
	// Two carve-outs on one path: hide beats protect.
	l.Covers = slices.CompactFunc(l.Covers, func(a, b Cover) bool { return a == b })
}
