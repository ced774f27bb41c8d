package plan

import (
	"fmt"
)

// prove refuses a plan under which some file could be written and executed.
//
// Rights only grow on the way down and only grants add any, so it is enough to
// ask at every grant (the kernel's own union, [Plan.Access]), and then for the
// three ways in which two different paths are one file: a directory seen
// through two mounts, the parts of an overlay, and hard links.
func (c *compiler) prove() error {
	c.plan.Proof.Symlinks = c.symlinks()
	if err := c.clashes(); err != nil {
		return err
	}
	if a, why := c.plan.explain(c.view, c.plan.Temp); a&Write != 0 {
		// Another run could swap what this one makes there.
		u := rule(why, Write)
		return &Problem{
			At:   u.At,
			What: fmt.Sprintf("temporary files would be made in %q, which the jail may write (%q)", c.plan.Temp, u.Text),
			Hint: "set TMPDIR to a directory outside of it, such as /tmp",
		}
	} else if a&Exec != 0 {
		return &Problem{
			At:   rule(why, Exec).At,
			What: fmt.Sprintf("temporary files would be made in %q, which may be executed", c.plan.Temp),
			Hint: "set TMPDIR to a directory outside of it",
		}
	}
	if err := c.aliases(); err != nil {
		return err
	}
	return c.hardLinks()
}

// clashes refuses a grant by which, with those around it, something is written and
// executed.
func (c *compiler) clashes() error {
	for _, g := range c.plan.grants {
		if a, why := c.plan.explain(c.view, g.Path); a&Write != 0 && a&Exec != 0 {
			return clash(g.Path, rule(why, Write), rule(why, Exec))
		}
	}
	return nil
}

// proveAgain asks the same of the grants that rules about commands have left, which
// are others: an exec grant that is gone may have kept something from being written.
func (c *compiler) proveAgain() error {
	if len(c.plan.Denied)+len(c.plan.Allowed) == 0 {
		return nil
	}
	if err := c.clashes(); err != nil {
		return err
	}
	proof := c.plan.Proof
	err := c.aliases()
	c.plan.Proof = proof // it tells of the rules as they are written
	if err != nil {
		return err
	}
	return c.linksAgain()
}

// rule picks the rule among grants that gives the access.
func rule(why []Grant, a Access) Use {
	for _, g := range why {
		for _, u := range g.From {
			if u.Access&a != 0 {
				return u
			}
		}
	}
	return Use{}
}

// clash is the counterexample to W^X: the path and the two rules.
func clash(path string, w, x Use) error {
	return &Problem{
		At: w.At,
		What: fmt.Sprintf("%q may be written (%s: %q) and executed (%s: %q)",
			path, w.At, w.Text, x.At, x.Text),
		Hint: "drop one of the two: what the jail may write it must not execute; with mounts, what is built there runs sealed without a rule",
	}
}

// alias is like clash for one file with two names.
func alias(wpath, xpath, how string, w, x Use) error {
	return &Problem{
		At: w.At,
		What: fmt.Sprintf("%q may be written (%s: %q) and is %s %q, which may be executed (%s: %q)",
			wpath, w.At, w.Text, how, xpath, x.At, x.Text),
		Hint: "drop one of the two rules, or remove the second name",
	}
}

// trees returns the grants that have the access.
func (c *compiler) trees(a Access) []Grant {
	var out []Grant
	for _, g := range c.plan.grants {
		if g.Access&a != 0 {
			out = append(out, g)
		}
	}
	return out
}
