package plan

import (
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// A split grant takes nothing from what a write grant further up gives, nor from
// the private /tmp, which may be read and written with all that is mounted in it.
// An exec tree in there keeps what is not to be read under a cover of the mounts
// layer. (Without that layer such trees are refused: one could write them.)

// coverUnlisted covers what is denied or not allowed, and could be read.
func (c *compiler) coverUnlisted() error {
	if !c.plan.Mounts {
		return nil
	}
	for _, d := range c.plan.Denied {
		c.coverRead(d.Path, d.At)
	}
	for _, g := range c.closed {
		c.coverClosed(g)
	}
	for _, g := range slices.Clone(c.plan.grants) {
		if g.Split && len(c.plan.Allowed) > 0 && c.givenAround(g.Path) {
			for _, e := range c.view.list(g.Path).entries {
				if e.kind != unix.DT_LNK && !g.Entries.has(e.name) {
					c.coverRead(filepath.Join(g.Path, e.name), g.From[0].At)
				}
			}
		}
	}
	return nil
}

// coverClosed hides what an exec grant was on that is gone, in a write tree: what the
// grant kept from being written would be, although by another name it may be allowed,
// or be executed in a later run.
func (c *compiler) coverClosed(g Grant) {
	granted := slices.ContainsFunc(c.plan.grants, func(inner Grant) bool { return within(inner.Path, g.Path) })
	if granted || !c.givenAround(filepath.Dir(g.Path)) {
		return
	}
	c.plan.Reopened = slices.DeleteFunc(c.plan.Reopened, func(r Reopened) bool { return r.Path == g.Path })
	c.plan.Carves = append(c.plan.Carves, Carve{Path: g.Path, Hide: true, Reached: Read | Write, At: g.From[0].At})
}

// givenAround tells whether a directory lies in a tree that may be written.
func (c *compiler) givenAround(dir string) bool {
	_, why := c.plan.explain(c.view, dir)
	return inPrivate(dir) || rule(why, Write).Access != 0
}

// coverRead hides a path unless something in it is granted, or nothing gives it.
func (c *compiler) coverRead(path string, at Origin) {
	granted := slices.ContainsFunc(c.plan.grants, func(g Grant) bool { return within(g.Path, path) })
	inExec := slices.ContainsFunc(c.plan.grants, func(g Grant) bool { return g.Split && within(path, g.Path) })
	if granted || !inExec || !c.givenAround(filepath.Dir(path)) {
		return
	}
	c.plan.Carves = append(c.plan.Carves, Carve{Path: path, Hide: true, Reached: Read, At: at})
}

// inPrivate tells whether path lies in a directory that the mounts layer makes
// anew and grants as a whole.
func inPrivate(path string) bool {
	return slices.ContainsFunc([]string{"/tmp", "/var/tmp", "/dev/shm"}, func(dir string) bool { return within(path, dir) })
}
