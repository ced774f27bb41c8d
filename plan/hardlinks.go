package plan

import (
	"errors"
	"fmt"
	"maps"
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
	paths []string      // the same
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
	for _, w := range c.seenTrees(Write) {
		for _, d := range c.devices(w) {
			devs[d] = true
		}
	}
	shared := func(d uint64) bool { return devs[d] }
	var search []searched
	for _, x := range c.seenTrees(Exec) {
		if !slices.ContainsFunc(c.devices(x), shared) {
			continue
		}
		for _, top := range append(c.layersOf(x.Path), x.Path) {
			for _, dir := range c.mine(top) {
				search = append(search, searched{x, dir})
			}
		}
	}
	if !c.host.Whole && c.large(search) && c.singleNames() {
		return nil
	}
	for _, s := range search {
		c.plan.Proof.Searched = append(c.plan.Proof.Searched, s.dir)
		if err := c.collectLinks(s.exec, s.dir, files); err != nil {
			return err
		}
	}
	c.plan.Proof.Linked = len(files)
	c.linked = maps.Clone(files)
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

// searched is a directory in an exec tree, or a layer of it, in which the user could
// have made links.
type searched struct {
	exec Grant
	dir  string
}

// fewFiles are looked at in some milliseconds.
const fewFiles = 2000

// large tells whether there are more files to be looked at.
func (c *compiler) large(search []searched) bool {
	budget := fewFiles
	for _, s := range search {
		if err := few(s.dir, c.host.UID, &budget, func(seenFile) bool { return true }); err != nil {
			return errors.Is(err, errEnough) // else it is told below what is wrong
		}
	}
	return false
}

// singleNames tells whether every file that may be written is seen to have one name
// only. Then none has another in an exec tree: it is the same proof from the other
// end, and the shorter one where large exec trees meet a small project. An overlay
// may count the names of its files otherwise than the layers do.
func (c *compiler) singleNames() bool {
	budget := 5 * fewFiles
	for _, w := range c.seenTrees(Write) {
		single := func(f seenFile) bool { return f.stat.Nlink < 2 }
		if len(c.layersOf(w.Path)) > 0 || few(w.Path, c.host.UID, &budget, single) != nil {
			return false
		}
	}
	return true
}

var errEnough = errors.New("enough")

// few walks until there is no budget left, a file is not as it should be, or
// something can't be looked at. Its error is nil if it has come to the end.
func few(dir string, uid int, budget *int, ok func(seenFile) bool) error {
	return walkFiles(dir, uid, func(f seenFile) error {
		if *budget--; *budget < 0 || !ok(f) {
			return errEnough
		}
		return nil
	})
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
		files[id].paths = append(files[id].paths, f.path())
		if !c.mountedOn(f.path()) {
			files[id].names[name{f.in, f.name}] = true
		}
		return nil
	})
}

// secondNames walks the write trees for files in the set.
func (c *compiler) secondNames(files map[ID]*linked) error {
	seen := 0
	for _, w := range c.seenTrees(Write) {
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

// linksAgain refuses a file of which one name may still be executed and another has
// come to be written: an exec grant inside of a write tree takes writing away, and may
// have gone. Other names than those that were seen have been asked about before.
func (c *compiler) linksAgain() error {
	for _, l := range c.linked {
		var written, executed string
		for _, path := range l.paths {
			switch a := c.access(path); {
			case a&Write != 0 && !slices.ContainsFunc(c.plan.Carves, func(cv Carve) bool { return cv.Hide && cv.Path == path }):
				written = path
			case a&Exec != 0:
				executed = path
			}
		}
		if written != "" && executed != "" {
			_, ws := c.plan.explain(c.view, written)
			_, xs := c.plan.explain(c.view, executed)
			return alias(written, executed, "the same file (a hard link) as", rule(ws, Write), rule(xs, Exec))
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
