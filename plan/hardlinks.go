package plan

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// maxLinkWalk bounds the look through write trees for the second name of a
// file. It is only made when an exec tree has a file with names elsewhere.
const maxLinkWalk = 1_000_000

// linked is a file in an exec tree with more names than one.
type linked struct {
	path  string // one of its names in an exec tree
	links uint64
	names map[string]bool // seen in exec trees, which may lie in one another
	exec  Grant
}

// hardLinks refuses a file that has one name in a write tree and another in an
// exec tree. Only exec trees that the user could write are looked through: in
// others nobody without privilege makes links, and /usr is large.
func (c *compiler) hardLinks() error {
	files := map[ID]*linked{}
	devs := map[uint64]bool{}
	for _, w := range c.trees(Write) {
		for _, d := range c.devices(w) {
			devs[d] = true
		}
	}
	shared := func(d uint64) bool { return devs[d] }
	for _, x := range c.trees(Exec) {
		if !slices.ContainsFunc(c.devices(x), shared) {
			continue
		}
		for _, dir := range c.mine(x.Path) {
			c.collectLinks(x, dir, files)
		}
	}
	for id, l := range files {
		if uint64(len(l.names)) >= l.links {
			delete(files, id)
		}
	}
	if len(files) == 0 {
		return nil
	}
	return c.secondNames(files)
}

// devices are the file systems that begin in a tree.
func (c *compiler) devices(g Grant) []uint64 {
	devs := []uint64{g.ID.Dev}
	for _, m := range c.mounts {
		if m.Mountpoint != g.Path && within(m.Mountpoint, g.Path) {
			devs = append(devs, c.view.lstat(m.Mountpoint).id.Dev)
		}
	}
	return devs
}

// mine lists the directories in an exec tree in which the user could have made
// links: the tree itself, or what lies a few levels down in somebody else's,
// such as /opt/tool or /usr/local. Root could anywhere; only what lies under its
// home is taken for its own.
func (c *compiler) mine(path string) []string {
	if c.host.UID == 0 {
		home, _, err := c.view.real(c.host.Home)
		if err == nil && home != "/" && within(path, home) {
			return []string{path}
		}
		return nil
	}
	budget := 24
	return c.mineBelow(path, &budget)
}

// mineBelow goes into directories with few directories in them (the link count
// tells, where the file system keeps it): /usr/local is one, /usr/share is not.
func (c *compiler) mineBelow(path string, budget *int) []string {
	var st unix.Stat_t
	if *budget--; *budget < 0 || unix.Lstat(path, &st) != nil {
		return nil
	}
	if int(st.Uid) == c.host.UID || st.Mode&0o022 != 0 && unix.Access(path, unix.W_OK) == nil {
		return []string{path}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Nlink < 3 || st.Nlink > 16 {
		return nil
	}
	entries, _ := os.ReadDir(path)
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, c.mineBelow(path+"/"+e.Name(), budget)...)
		}
	}
	return out
}

func (c *compiler) collectLinks(x Grant, dir string, files map[ID]*linked) {
	walkFiles(dir, func(path func() string, st *unix.Stat_t) bool {
		if st.Nlink < 2 || c.access(path())&Exec == 0 {
			return true
		}
		id := ID{Dev: st.Dev, Ino: st.Ino}
		if files[id] == nil {
			files[id] = &linked{path: path(), links: uint64(st.Nlink), exec: x, names: map[string]bool{}}
		}
		files[id].names[path()] = true
		return true
	})
}

// secondNames walks the write trees for files in the set.
func (c *compiler) secondNames(files map[ID]*linked) error {
	seen := 0
	var problem error
	for _, w := range c.trees(Write) {
		walkFiles(w.Path, func(path func() string, st *unix.Stat_t) bool {
			seen++
			l := files[ID{Dev: st.Dev, Ino: st.Ino}]
			switch {
			case l != nil && c.access(path())&Write != 0:
				problem = alias(path(), l.path, "the same file (a hard link) as", rule([]Grant{w}, Write), rule([]Grant{l.exec}, Exec))
			case seen > maxLinkWalk:
				problem = &Problem{
					At: w.From[0].At, What: fmt.Sprintf("%q has too many files to look for hard links into exec trees", w.Path),
					Hint: "grant less, or replace the file by a copy: " + anyPath(files),
				}
			}
			return problem == nil
		})
		if problem != nil {
			return problem
		}
	}
	return nil
}

func anyPath(files map[ID]*linked) string {
	for _, l := range files {
		return l.path
	}
	return ""
}

// walkFiles calls f for each regular file beneath root until it returns false.
// What can't be read is passed over: the jail can't read it either. Files are
// looked up relative to the open directory, which halves the time.
func walkFiles(root string, f func(path func() string, st *unix.Stat_t) bool) bool {
	var st unix.Stat_t
	if unix.Lstat(root, &st) != nil {
		return true
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return f(func() string { return root }, &st)
	case unix.S_IFDIR:
		return walkDir(root, f)
	}
	return true
}

func walkDir(dir string, f func(path func() string, st *unix.Stat_t) bool) bool {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return true
	}
	entries, _ := d.ReadDir(-1)
	fd := int(d.Fd())
	for _, e := range entries {
		var st unix.Stat_t
		if !e.Type().IsRegular() || unix.Fstatat(fd, e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		if !f(func() string { return dir + "/" + e.Name() }, &st) {
			d.Close()
			return false
		}
	}
	d.Close() // before going deeper: depth must not cost descriptors
	for _, e := range entries {
		if e.IsDir() && !walkDir(dir+"/"+e.Name(), f) {
			return false
		}
	}
	return true
}
