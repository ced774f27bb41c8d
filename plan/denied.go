package plan

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"jail/rules"
)

// Denied is one file that a deny rule takes away. A command has one for each of
// its names and copies.
type Denied struct {
	Path    string // real
	ID      ID
	Size    int64
	Of      string // the path that the rule names, if this is another name or a copy
	Applet  bool   // of a file that is many commands, and one of them is denied
	Text    string // the rule
	At      Origin
	Message string
}

// deny finds the files of every deny rule: those that it names, then, in the
// directories of programs, every other name of them and every copy.
func (c *compiler) deny() error {
	for n := range c.pol.Deny() {
		files, err := c.deniedFiles(n)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := oneOfMany(n, f); err != nil {
				return err
			}
			c.addDenied(Denied{Path: f.path, ID: f.id, Size: f.size, Text: n.Path.Text, At: n.From})
		}
	}
	if len(c.plan.Denied) == 0 {
		return nil
	}
	for _, step := range []func() error{c.copies, c.applets, c.linksElsewhere, c.bothWays, c.withoutDenied} {
		if err := step(); err != nil {
			return err
		}
	}
	slices.SortFunc(c.plan.Denied, func(a, b Denied) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// addDenied adds a file once.
func (c *compiler) addDenied(d Denied) {
	if slices.ContainsFunc(c.plan.Denied, func(have Denied) bool { return have.Path == d.Path }) {
		return
	}
	d.Message = c.message(d.Text, d.ID)
	c.plan.Denied = append(c.plan.Denied, d)
}

// deniedFiles are the files that a rule names: all of that name, not only the
// first in PATH.
func (c *compiler) deniedFiles(n rules.Named) ([]file, error) {
	if !n.Bare {
		f, ok, err := c.fileAt(n.Path, n.From)
		if err != nil || !ok {
			return nil, err
		}
		return []file{f}, nil
	}
	found := map[string]file{}
	for _, dir := range append(c.searchPath(), slices.Sorted(maps.Keys(c.programDirs()))...) {
		if f, ok := c.fileIn(dir, n.Path.Text); ok {
			found[f.path] = f
		}
	}
	if own, ok, err := c.ownFile(n); err != nil {
		return nil, err
	} else if ok {
		found[own.path] = own
	}
	if len(found) == 0 && !n.Path.Optional {
		return nil, notFound(n)
	}
	if len(found) == 0 {
		c.missing(n.Path.Text, n.From)
	}
	var out []file
	for _, path := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[path])
	}
	return out, nil
}

func notFound(n rules.Named) error {
	return &Problem{
		At: n.From, What: fmt.Sprintf("%q: no such command in PATH", n.Path.Text),
		Hint: `write its path, or end the name with "?" if it may be absent`,
	}
}

// copies looks at every program for the denied bytes: size first, then all.
func (c *compiler) copies() error {
	bySize := map[int64][]Denied{}
	for _, d := range c.plan.Denied {
		bySize[d.Size] = append(bySize[d.Size], d)
	}
	for dir, names := range c.programDirs() {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // what can't be searched by us can't be by the jail
		}
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || bySize[st.Size] == nil {
				continue
			}
			f := file{path: dir + "/" + name, id: ID{Dev: st.Dev, Ino: st.Ino}, size: st.Size}
			if d, ok := c.sameBytes(f, bySize[st.Size]); ok {
				c.addDenied(Denied{Path: f.path, ID: f.id, Size: f.size, Of: d.Path, Text: d.Text, At: d.At})
			}
		}
		unix.Close(fd)
	}
	return nil
}

// sameBytes returns the denied file that f is, or is a copy of.
func (c *compiler) sameBytes(f file, among []Denied) (Denied, bool) {
	for _, d := range among {
		if d.ID == f.id || f.size > 0 && c.equal(f.path, d.Path) {
			return d, true
		}
	}
	return Denied{}, false
}

// equal compares two files by their digests, which are remembered. Where one
// can't be read they count as different: unreadable here is unreadable inside.
func (c *compiler) equal(a, b string) bool {
	x, _, err1 := c.host.Digests.Sum(a)
	y, _, err2 := c.host.Digests.Sum(b)
	return err1 == nil && err2 == nil && x == y
}

// linksElsewhere finds names of a denied inode outside of the directories of
// programs: a right on one name is one on all, to Landlock. The inode's link count
// tells whether there are any, so that the walk is made for hardly any command.
func (c *compiler) linksElsewhere() error {
	names := map[ID]map[name]bool{}
	for _, d := range c.plan.Denied {
		if names[d.ID] == nil {
			names[d.ID] = map[name]bool{}
		}
		if !c.mountedOn(d.Path) {
			names[d.ID][name{identity(filepath.Dir(d.Path)), filepath.Base(d.Path)}] = true
		}
	}
	lost := map[ID]Denied{}
	for _, d := range c.plan.Denied {
		var st unix.Stat_t
		if unix.Lstat(d.Path, &st) == nil && int(st.Nlink) > len(names[d.ID]) {
			lost[d.ID] = d
		}
	}
	if len(lost) == 0 {
		return nil
	}
	seen := 0
	for _, x := range c.trees(Read) {
		if x.Access&Write != 0 || !c.holdsDevice(x, lost) {
			continue
		}
		err := walkFiles(x.Path, c.host.UID, func(f seenFile) error {
			if d, ok := lost[f.id()]; ok {
				c.addDenied(Denied{Path: f.path(), ID: d.ID, Size: d.Size, Of: d.Path, Text: d.Text, At: d.At})
			}
			if seen++; seen < maxLinkWalk {
				return nil
			}
			return &Problem{
				At: x.From[0].At, What: fmt.Sprintf("%q has too many files to look for other names of what is denied", x.Path),
				Hint: "grant less, or replace the hard link by a copy: " + anyDenied(lost),
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// holdsDevice tells whether a tree has files of the file system of one of these.
func (c *compiler) holdsDevice(x Grant, lost map[ID]Denied) bool {
	for _, dev := range c.devices(x) {
		for id := range lost {
			if id.Dev == dev {
				return true
			}
		}
	}
	return false
}

func anyDenied(m map[ID]Denied) string {
	for _, d := range m {
		return d.Path
	}
	return ""
}

// bothWays refuses a file that is allowed and denied, under whatever names.
func (c *compiler) bothWays() error {
	for _, a := range c.plan.Allowed {
		for _, d := range c.plan.Denied {
			if a.ID != d.ID && a.Path != d.Path || a.For != "" {
				continue
			}
			what := fmt.Sprintf("%q is allowed (%s) and denied", d.Text, a.At)
			switch {
			case d.Applet:
				what = fmt.Sprintf("%q is denied, and %q, which is allowed (%s), has it built in", d.Text, a.Path, a.At)
			case a.Text != d.Text:
				what = fmt.Sprintf("%q is denied, and is the same file as %q, which is allowed (%s): %q", d.Text, a.Text, a.At, a.Path)
			}
			return &Problem{At: d.At, What: what, Hint: "one file is one program to the kernel, whatever its name: drop one of the two"}
		}
	}
	return nil
}

// withoutDenied drops interpreters and helpers that are denied: deny beats what
// nobody has named.
func (c *compiler) withoutDenied() error {
	c.plan.Allowed = slices.DeleteFunc(c.plan.Allowed, func(a Allowed) bool {
		d, ok := c.plan.denied(a.ID, a.Path)
		if ok {
			c.remark("%s (%s), %s of %q, is denied (%s)", a.Path, a.At, a.For, a.Text, d.At)
		}
		return ok
	})
	return nil
}

// file is a regular file that could be executed.
type file struct {
	path string // real
	id   ID
	size int64
	mode uint32
}

// fileAt is the file that a rule names by its path. ok is false if it may be absent
// and is.
func (c *compiler) fileAt(p rules.Path, at Origin) (f file, ok bool, err error) {
	path, set := c.absolute(p)
	real, exists, err := "", false, error(nil)
	if set {
		real, exists, err = c.view.real(path)
	}
	switch {
	case (err != nil || !exists) && p.Optional:
		c.missing(p.Text, at)
		return file{}, false, nil
	case err != nil:
		return file{}, false, &Problem{At: at, What: fmt.Sprintf("%q: %v", p.Text, Cause(err))}
	case !exists:
		return file{}, false, &Problem{
			At: at, What: fmt.Sprintf("%q does not exist", p.Text), Hint: `end it with "?" if it may be absent`,
		}
	}
	var st unix.Stat_t
	if err := unix.Lstat(real, &st); err != nil {
		return file{}, false, &Problem{At: at, What: fmt.Sprintf("%q: %v", p.Text, err)}
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return file{real, ID{Dev: st.Dev, Ino: st.Ino}, st.Size, st.Mode}, true, nil
	case unix.S_IFDIR:
		return file{}, false, &Problem{
			At: at, What: fmt.Sprintf("%q is a directory, no command", p.Text), Hint: "name the programs in it; [files] exec grants directories",
		}
	}
	return file{}, false, &Problem{At: at, What: fmt.Sprintf("%q is no regular file", p.Text)}
}

// fileIn is the program of that name in a directory, its links followed.
func (c *compiler) fileIn(dir, name string) (file, bool) {
	path := filepath.Join(dir, name)
	if c.view.lstat(path).err != nil {
		return file{}, false
	}
	real, exists, err := c.view.real(path)
	var st unix.Stat_t
	if err != nil || !exists || unix.Lstat(real, &st) != nil ||
		st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0 {
		return file{}, false
	}
	return file{real, ID{Dev: st.Dev, Ino: st.Ino}, st.Size, st.Mode}, true
}
