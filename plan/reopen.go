package plan

import (
	"slices"
)

// Reopened is a grant inside a carve-out that gives back what the carve-out takes
// away: its path is longer, and it comes from the same file, or is a flag.
type Reopened struct {
	Path   string
	Dir    bool
	Access Access // what is given back
	Carve  string // the carve-out around it
	At     Origin
}

// reopen finds the grants that reopen carve-outs. Another file's grant never
// does: a project's rules would open what the user's own hide.
func (c *compiler) reopen() error {
	if !c.plan.Mounts {
		return nil
	}
	for _, g := range c.plan.grants { // outer before inner, in the order of paths
		around := c.around(g.Path)
		r := Reopened{Path: g.Path, Dir: g.Dir}
		hidden := slices.ContainsFunc(around, func(cv Carve) bool { return cv.Hide })
		for _, a := range []Access{Read, Write, Exec} {
			if u, ok := givesBack(g, a, around); ok {
				r.Access |= a
				r.At = u.At
			}
		}
		// Protecting takes no executing away, but writing that is given back around does.
		inReopened := slices.ContainsFunc(c.plan.Reopened, func(outer Reopened) bool { return within(g.Path, outer.Path) })
		switch {
		case len(around) == 0, hidden && r.Access&Read == 0, !hidden && r.Access&Write == 0 && !(inReopened && r.Access&Exec != 0):
			continue
		}
		r.Carve = around[0].Path
		c.plan.Reopened = append(c.plan.Reopened, r)
	}
	c.reachedOtherwise()
	c.reopenedAround()
	return nil
}

// reopenedAround adds what a reopening grant further up gives back as well, unless
// a carve-out lies between the two: a grant takes nothing away, but that of
// writing and executing the inner one decides. What then gives no other access
// needs no mount of its own, across which nothing could be renamed.
func (c *compiler) reopenedAround() {
	var out []Reopened
	for _, inner := range c.plan.Reopened { // outer before inner
		same := false
		for _, outer := range slices.Backward(out) {
			between := func(cv Carve) bool { return within(cv.Path, outer.Path) }
			if !within(inner.Path, outer.Path) || slices.ContainsFunc(c.around(inner.Path), between) {
				continue
			}
			more := outer.Access
			if inner.Access&(Write|Exec) != 0 {
				more &^= Write | Exec
			}
			inner.Access |= more
			same = inner.Access == outer.Access
			break // which has what is further up
		}
		if !same {
			out = append(out, inner)
		}
	}
	c.plan.Reopened = out
}

// around lists the open carve-outs that cover a path, the outermost first.
func (c *compiler) around(path string) []Carve {
	var out []Carve
	for _, cv := range c.plan.Carves {
		if cv.Open() && !cv.Glob && within(path, cv.Path) {
			out = append(out, cv)
		}
	}
	slices.SortFunc(out, func(a, b Carve) int { return len(a.Path) - len(b.Path) })
	return out
}

// givesBack tells whether a grant has the access from a rule that every carve-out
// around accepts. Protecting takes only writing away.
func givesBack(g Grant, a Access, around []Carve) (Use, bool) {
	for _, u := range g.From {
		has := u.Access | Read // writing and executing imply reading
		if has&a == 0 {
			continue
		}
		refused := slices.ContainsFunc(around, func(cv Carve) bool {
			taken := cv.Hide || a == Write
			return taken && (cv.Path == g.Path || u.At.Source != cv.At.Source && u.At.Source != flagSource)
		})
		if !refused {
			return u, true
		}
	}
	return Use{}, false
}

// flagSource is the number of the command line among the sources.
const flagSource = -1

// reachedOtherwise takes back what carve-outs were said to have to take away
// only because of grants that reopen them.
func (c *compiler) reachedOtherwise() {
	for i, cv := range c.plan.Carves {
		if !cv.Open() || cv.Glob || !slices.ContainsFunc(c.plan.Reopened, func(r Reopened) bool { return within(r.Path, cv.Path) }) {
			continue
		}
		a := c.access(cv.Path)
		for _, g := range c.plan.grants {
			reopens := slices.ContainsFunc(c.plan.Reopened, func(r Reopened) bool { return r.Path == g.Path && g.Access&^r.Access == 0 })
			if within(g.Path, cv.Path) && !reopens {
				a |= g.Access
			}
		}
		c.plan.Carves[i].Reached = a
	}
}
