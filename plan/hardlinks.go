package plan

import (
	"fmt"
	"os"
	"slices"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// maxLinkWalk bounds the look through write trees for the second name of a
// file. It is only made when an exec tree has a file with names elsewhere.
const maxLinkWalk = 1_000_000

// linked is a file in an exec tree with more names than one.
type linked struct {
	path  string // one of its names in an exec tree
	links uint64
	names map[name]bool // seen in exec trees, which may lie in one another
	exec  Grant
}

// name is one name of a file: its directory's identity, since one directory may
// be seen through several mounts, and the word in it. Where the file is mounted on
// another it has no name: the link count does not know of it.
type name struct {
	in   ID
	word string
}

// mountedOn tells whether something is mounted on a path itself.
func (c *compiler) mountedOn(path string) bool {
	return slices.ContainsFunc(c.mounts, func(m *mountinfo.Info) bool { return m.Mountpoint == path })
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
		for _, top := range append(c.layersOf(x.Path), x.Path) {
			for _, dir := range c.mine(top) {
				c.plan.Proof.Searched = append(c.plan.Proof.Searched, dir)
				if err := c.collectLinks(x, dir, files); err != nil {
					return err
				}
			}
		}
	}
	c.plan.Proof.Linked = len(files)
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
	for _, layer := range c.layersOf(g.Path) {
		devs = append(devs, c.view.lstat(layer).id.Dev)
	}
	return devs
}

// layersOf lists the directories of overlays in a tree, as far as they can be
// reached here: a file in a layer may have another name outside of the overlay.
func (c *compiler) layersOf(path string) []string {
	var out []string
	for _, p := range c.view.pieces(c.mounts, path, 0) {
		if p.name != p.seen {
			out = append(out, p.name)
		}
	}
	return out
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

// collectLinks adds the files with several names below dir: the exec tree, a part
// of it, or a layer under it.
func (c *compiler) collectLinks(x Grant, dir string, files map[ID]*linked) error {
	layer := !within(dir, x.Path)
	return walkFiles(dir, c.host.UID, func(f seenFile) error {
		if f.stat.Nlink < 2 || !layer && c.access(f.path())&Exec == 0 {
			return nil
		}
		id := f.id()
		if files[id] == nil {
			files[id] = &linked{path: f.path(), links: uint64(f.stat.Nlink), exec: x, names: map[name]bool{}}
		}
		if !c.mountedOn(f.path()) {
			files[id].names[name{f.in, f.name}] = true
		}
		return nil
	})
}

// secondNames walks the write trees for files in the set.
func (c *compiler) secondNames(files map[ID]*linked) error {
	seen := 0
	for _, w := range c.trees(Write) {
		err := walkFiles(w.Path, c.host.UID, func(f seenFile) error {
			seen++
			l := files[f.id()]
			switch {
			case l != nil && c.access(f.path())&Write != 0:
				return alias(f.path(), l.path, "the same file (a hard link) as", rule([]Grant{w}, Write), rule([]Grant{l.exec}, Exec))
			case seen > maxLinkWalk:
				return &Problem{
					At: w.From[0].At, What: fmt.Sprintf("%q has too many files to look for hard links into exec trees", w.Path),
					Hint: "grant less, or replace the file by a copy: " + anyPath(files),
				}
			}
			return nil
		})
		if err != nil {
			return err
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
