package plan

import (
	"fmt"
	"path/filepath"
	"slices"

	"jail/digest"
	"jail/rules"
)

// pins checks digests: those of [[command]], and those of lock files. The state
// of the inode in which the digest was right goes with the grant, and is
// compared on the very descriptor that is granted.
func (c *compiler) pins() error {
	for cmd := range c.pol.Commands() {
		if cmd.SHA256 == "" {
			continue
		}
		f, ok, err := c.allowedFile(cmd.Named)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := c.pin(f, cmd.SHA256, cmd.AtSHA256, cmd.Path.Text, "run sha256sum on the file and write the digest into the rule, if the change is right"); err != nil {
			return err
		}
	}
	for lock := range c.pol.Locks() {
		if err := c.locked(lock); err != nil {
			return err
		}
	}
	return nil
}

// pin compares the digest of a file and has its grant say so.
func (c *compiler) pin(f file, want string, at Origin, name, hint string) error {
	sum, state, err := c.host.Digests.Sum(f.path)
	switch {
	case err != nil:
		return &Problem{At: at, What: fmt.Sprintf("%q: the digest of %q can't be made: %v", name, f.path, Cause(err))}
	case ID{Dev: state.Dev, Ino: state.Ino} != f.id:
		return &Problem{At: at, What: fmt.Sprintf("%q was replaced while jail was starting", f.path)}
	case sum != want:
		return &Problem{
			At: at, Hint: hint,
			What: fmt.Sprintf("%q: %q is not the file that it was:\n  sha256 %s is wanted\n  sha256 %s is there", name, f.path, want, sum),
		}
	}
	c.pinned = append(c.pinned, pinned{f, &state})
	return nil
}

type pinned struct {
	file
	state *digest.State
}

// setPins puts the pins on the grants; a file that a directory grants gets a grant
// of its own, so that its descriptor is looked at.
func (c *compiler) setPins() error {
	for _, p := range c.pinned {
		a, why := c.plan.explain(c.view, p.path)
		if a&Exec == 0 {
			continue
		}
		i := slices.IndexFunc(c.plan.grants, func(g Grant) bool { return g.Path == p.path })
		if i < 0 {
			u := rule(why, Exec)
			c.plan.grants = append(c.plan.grants, Grant{Path: p.path, Access: Read | Exec, ID: p.id, From: []Use{u}})
			i = len(c.plan.grants) - 1
		}
		c.plan.grants[i].Pin = p.state
	}
	return c.sort()
}

// locked compares the commands that a rule file allows with its lock file: each
// is in it, with the path and the digest that it has here.
func (c *compiler) locked(lock rules.Lock) error {
	const hint = "`jail lock --update` shows what has changed and writes it down"
	rest := map[string]rules.Locked{}
	for _, e := range lock.Entries {
		rest[e.Name] = e
	}
	list, _ := c.pol.Allow()
	for _, n := range list {
		if n.From.Source != lock.Source {
			continue
		}
		e, ok := rest[n.Path.Text]
		f, found, err := c.allowedFile(n)
		delete(rest, n.Path.Text)
		switch {
		case err != nil:
			return err
		case !found:
			continue
		case !ok:
			return &Problem{At: n.From, What: fmt.Sprintf("%q is allowed, but not in %q", n.Path.Text, lock.Name), Hint: hint}
		case e.Path != f.path:
			return &Problem{At: e.At, What: fmt.Sprintf("%q is locked to %q, but here it is %q", e.Name, e.Path, f.path), Hint: hint}
		}
		if err := c.pin(f, e.SHA256, e.At, e.Name, hint); err != nil {
			return err
		}
	}
	for _, e := range lock.Entries {
		if _, left := rest[e.Name]; left {
			return &Problem{At: e.At, What: fmt.Sprintf("%q is locked, but the rules beside %q do not allow it", e.Name, filepath.Base(lock.Name)), Hint: hint}
		}
	}
	return nil
}

// Lock lists what a lock file for the rule file of that number has to say, but for
// packages. It is for `jail lock`: nothing is compared.
func Lock(pol rules.Policy, h Host, source int) ([]rules.Locked, error) {
	c := newCompiler(pol, h)
	for _, step := range []func() error{c.readMounts, c.grants, c.sort} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	var out []rules.Locked
	list, _ := pol.Allow()
	for _, n := range list {
		if n.From.Source != source {
			continue
		}
		f, found, err := c.allowedFile(n)
		if err != nil {
			return nil, err
		}
		if !found || slices.ContainsFunc(out, func(e rules.Locked) bool { return e.Name == n.Path.Text }) {
			continue
		}
		sum, _, err := c.host.Digests.Sum(f.path)
		if err != nil {
			return nil, &Problem{At: n.From, What: fmt.Sprintf("%q: the digest of %q can't be made: %v", n.Path.Text, f.path, Cause(err))}
		}
		out = append(out, rules.Locked{Name: n.Path.Text, Path: f.path, SHA256: sum})
	}
	return out, nil
}
