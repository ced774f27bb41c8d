package plan

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Landlock only grants: nothing takes away from a grant on a directory. So a file
// is denied by not granting the directory that it is in, but one by one what else
// is in there, and likewise for every directory above up to the one that a rule
// names. Such a grant is split: it reaches the Entries and no others. That is
// sound because the entries lie in exec trees, which the jail can't write; a name
// that appears later, by a package upgrade for one, is in no grant at all.

// reaches tells whether a grant on dir reaches path, which is it or beneath it.
// Where dir is the granted directory in another mount, an entry may be another
// file there: the rule is on what the entry is in the granted one.
func (g *Grant) reaches(v *view, dir, path string) bool {
	if !g.Split || dir == path {
		return true
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(path[len(dir):], "/"), "/")
	return g.Entries.has(name) &&
		(dir == g.Path || v.lstat(filepath.Join(dir, name)).id == v.lstat(filepath.Join(g.Path, name)).id)
}

// gives is what a grant on dir gives on path, which is it or beneath it. Of a
// split grant every directory may be listed: that right is on the outermost.
func (g *Grant) gives(v *view, dir, path string) Access {
	switch {
	case g.Split && v.lstat(path).mode.IsDir() && (dir == path || !g.reaches(v, dir, path)):
		return Read
	case g.reaches(v, dir, path):
		return g.Access
	}
	return 0
}

// throughEntries is what a file with several names has, beyond what is known, by
// another name that is an entry of a split grant: the kernel's rule is on the inode.
// Of what is seen by another mount see grantMounted.
func (p Plan) throughEntries(v *view, path string, known Access) (a Access, why []Grant) {
	n := v.lstat(path)
	if n.links < 2 || n.mode.IsDir() {
		return 0, nil
	}
	for i := range p.grants {
		g := &p.grants[i]
		if g.Access&^known == 0 {
			continue // a thousand looks for nothing
		}
		for _, e := range g.Entries {
			if v.lstat(g.Path+"/"+e).id == n.id {
				a |= g.Access
				why = append(why, *g)
			}
		}
	}
	return a, why
}

// Names are names in a directory, sorted; those of directories end in a slash.
type Names []string

func (n Names) has(name string) bool {
	_, found := slices.BinarySearch(n, name)
	if !found {
		_, found = slices.BinarySearch(n, name+"/")
	}
	return found
}

// MarshalJSON writes names as one string of bytes: there may be a thousand, and
// the kernel does not care whether they are UTF-8.
func (n Names) MarshalJSON() ([]byte, error) {
	return json.Marshal([]byte(strings.Join(n, "\x00")))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (n *Names) UnmarshalJSON(text []byte) error {
	var joined []byte
	if err := json.Unmarshal(text, &joined); err != nil || len(joined) == 0 {
		return err
	}
	*n = strings.Split(string(joined), "\x00")
	return nil
}

// carveDenied takes every denied file out of the grants. Those on a file itself go
// first: without its own grant for writing a file may be one of an exec tree.
func (c *compiler) carveDenied() error {
	c.plan.grants = slices.DeleteFunc(c.plan.grants, func(g Grant) bool {
		denied := !g.Dir && c.isDenied(g.ID)
		if denied && g.Access&Exec != 0 {
			c.closed = append(c.closed, g)
		}
		return denied
	})
	c.plan.Reopened = slices.DeleteFunc(c.plan.Reopened, func(r Reopened) bool { return !r.Dir && c.isDenied(c.view.lstat(r.Path).id) })
	omit := map[string]map[string]bool{} // by directory: what is left out of it
	for _, d := range c.plan.Denied {
		for _, path := range c.namesOf(d.Path) {
			if a := c.access(path); a != 0 && a&Write == 0 { // else out of reach, or never executed
				c.omit(path, omit)
			}
		}
	}
	if err := c.splitAll(omit); err != nil {
		return err
	}
	c.grantMounted()
	return c.sort()
}

// grantMounted gives a grant of its own to each entry of a split grant that a mount
// shows elsewhere, or that is shown there by a mount: the kernel's rule is on the
// inode, which has rights by every path.
func (c *compiler) grantMounted() {
	for _, g := range slices.Clone(c.plan.grants) {
		if !g.Split {
			continue
		}
		in, ok := c.pieceOf(g.Path)
		for _, m := range c.mounts {
			if filepath.Dir(m.Mountpoint) == g.Path {
				c.putEntry(g, filepath.Base(m.Mountpoint))
			}
			if ok && m.Major == in.major && m.Minor == in.minor && filepath.Dir(m.Root) == in.path {
				c.putEntry(g, filepath.Base(m.Root))
			}
		}
	}
}

// putEntry makes an entry of a split grant a grant of its own, too. If there is
// one, it gives what both do, unless it is for writing: then only that.
func (c *compiler) putEntry(g Grant, name string) {
	if !g.Entries.has(name) {
		return
	}
	path := filepath.Join(g.Path, name)
	n := c.view.lstat(path)
	i := slices.IndexFunc(c.plan.grants, func(have Grant) bool { return have.Path == path })
	switch {
	case i < 0:
		c.put(Grant{Path: path, Access: g.Access, Dir: n.mode.IsDir(), ID: n.id, Load: g.Load, From: g.From})
	case !c.plan.grants[i].Split && c.plan.grants[i].Access&Write == 0:
		c.plan.grants[i].Access |= g.Access
		c.plan.grants[i].Load = c.plan.grants[i].Load || g.Load
		c.plan.grants[i].From = slices.Concat(c.plan.grants[i].From, g.From)
	}
}

// isDenied tells whether a file is denied, by whatever name.
func (c *compiler) isDenied(id ID) bool {
	return slices.ContainsFunc(c.plan.Denied, func(d Denied) bool { return d.ID == id })
}

// omit notes path as left out of each directory above it, up to the outermost
// that is granted. A tree that may be written is not split: new names have to be
// possible there (see coverUnlisted).
func (c *compiler) omit(path string, omit map[string]map[string]bool) {
	for path != "/" {
		dir, name := filepath.Dir(path), filepath.Base(path)
		// By another mount's path the flags are those of the rest, but the grant is the one.
		a, why := c.plan.explain(c.view, dir)
		if len(why) == 0 || a&Write != 0 || why[0].Access&Write != 0 || omit[dir][name] {
			return
		}
		if omit[dir] == nil {
			omit[dir] = map[string]bool{}
		}
		omit[dir][name] = true
		for _, g := range why {
			if g.ID == c.view.lstat(dir).id && g.Path != dir {
				c.omit(filepath.Join(g.Path, name), omit)
			}
		}
		path = dir
	}
}

// splitAll makes grants on directories to grants on what is in them. What
// reaches each is found out before the first is changed, and by its path: what
// another mount's path gives is split there, and may be other than here.
func (c *compiler) splitAll(omit map[string]map[string]bool) error {
	reach := map[string][]Grant{}
	for dir := range omit {
		_, why := c.plan.explain(c.view, dir)
		reach[dir] = slices.DeleteFunc(why, func(g Grant) bool { return !within(dir, g.Path) })
	}
	for dir, names := range omit {
		if len(reach[dir]) == 0 {
			continue
		}
		if err := c.split(dir, names, reach[dir]); err != nil {
			return err
		}
	}
	return c.sort()
}

// split puts a split grant on dir that gives what the grants which reach it gave.
func (c *compiler) split(dir string, omit map[string]bool, reach []Grant) error {
	g := Grant{Path: dir, Dir: true, ID: c.view.lstat(dir).id}
	i := slices.IndexFunc(c.plan.grants, func(have Grant) bool { return have.Path == dir })
	if i >= 0 && c.plan.grants[i].Split {
		c.keepEntries(c.plan.grants[i], omit, len(reach) > 1)
		if len(reach) == 1 {
			return nil
		}
	}
	for _, r := range reach {
		if (r.Path != dir || !r.Split) && r.Access&Write == 0 {
			g.Access |= r.Access
			g.Load = g.Load || r.Load
			g.From = append(g.From, r.From...)
		}
	}
	l := c.view.list(dir)
	if l.err != nil {
		return &Problem{
			At: g.From[0].At, What: fmt.Sprintf("%q has something in it that is denied, and can't be listed: %v", dir, Cause(l.err)),
			Hint: "what else is in there is granted name by name; make it readable",
		}
	}
	g.Split, g.Changed, g.Entries = true, l.changed, l.grantable(omit)
	c.put(g)
	return nil
}

// keepEntries narrows a grant that is split already. If one further up reaches
// the directory too, each entry gets a grant of its own, so that what the two
// give is not mixed.
func (c *compiler) keepEntries(g Grant, omit map[string]bool, apart bool) {
	g.Entries = slices.DeleteFunc(slices.Clone(g.Entries), func(e string) bool { return omit[strings.TrimSuffix(e, "/")] })
	if !apart {
		c.put(g)
		return
	}
	for _, e := range g.Entries {
		c.putEntry(g, strings.TrimSuffix(e, "/"))
	}
}

// put replaces the grant on the same path, or adds one.
func (c *compiler) put(g Grant) {
	i := slices.IndexFunc(c.plan.grants, func(have Grant) bool { return have.Path == g.Path })
	if i < 0 {
		c.plan.grants = append(c.plan.grants, g)
		return
	}
	c.plan.grants[i] = g
}
