package plan

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// With an allow list an exec tree is executed only where the list says, and read
// only as far as libraries and data go. Programs that are not listed must not
// be readable: the loader that every program needs runs what it can read.

// shrink replaces the exec grants by what is left of them.
func (c *compiler) shrink() error {
	if len(c.plan.Allowed) == 0 {
		return nil
	}
	old := c.plan.grants
	c.plan.grants = nil
	for _, g := range old {
		switch {
		case g.Access&Exec == 0 || g.Access&Write != 0:
			c.plan.grants = append(c.plan.grants, g)
		case g.Dir && !readByRule(g):
			c.shrinkTree(g.Path, g.From)
		case g.Dir:
			c.give(g.Path, Read, g.From)
		default:
			c.closed = append(c.closed, g)
		}
	}
	for _, r := range c.readings {
		c.give(r.path, Read, []Use{{Access: Read, Text: r.text, At: r.at}})
	}
	for _, a := range c.plan.Allowed {
		c.give(a.Path, Read|Exec, []Use{{Access: Exec, Text: a.Text, At: a.At}})
	}
	return c.sort()
}

// readByRule tells whether a rule grants reading the tree for its own sake.
func readByRule(g Grant) bool {
	return slices.ContainsFunc(g.From, func(u Use) bool { return u.Access == Read })
}

// give adds a grant on a file or a whole directory to what is granted by that path.
func (c *compiler) give(path string, access Access, from []Use) {
	n := c.view.lstat(path)
	g := Grant{Path: path, Access: access, Dir: n.mode.IsDir(), ID: n.id, Load: n.mode.IsDir(), From: from}
	if i := slices.IndexFunc(c.plan.grants, func(have Grant) bool { return have.Path == path }); i >= 0 {
		have := c.plan.grants[i]
		g.Access |= have.Access &^ Exec // of a split grant this is no more than Read
		if !have.Split {
			g.Access |= have.Access
		}
		g.From = append(slices.Clone(have.From), from...)
	}
	c.put(g)
}

// shrinkTree leaves of a tree what its name, and the names in it, say of it.
func (c *compiler) shrinkTree(dir string, from []Use) {
	if slices.ContainsFunc(c.plan.grants, func(g Grant) bool { return g.Path == dir && g.Split }) {
		return // done from further up
	}
	name := filepath.Base(dir)
	switch {
	case slices.Contains([]string{"share", "include"}, name):
		c.give(dir, Read, from)
	case libraryDir(name):
		c.shrinkLibraries(dir, from)
	default:
		c.putSplit(dir, nil, from)
		if isProgramDir(name) {
			return
		}
		for _, e := range c.view.list(dir).entries {
			sub := filepath.Join(dir, e.name)
			if e.isDir() && (libraryDir(e.name) || slices.Contains([]string{"share", "include"}, e.name) || sub == "/usr/local") {
				c.shrinkTree(sub, from)
			}
		}
	}
}

func libraryDir(name string) bool {
	return slices.Contains([]string{"lib", "lib32", "lib64", "libx32"}, name)
}

// shrinkLibraries leaves a library directory its libraries, what else is no
// program, and directories that are known to hold neither. Others belong to
// commands: helper sets, helpers and [files] read open them.
func (c *compiler) shrinkLibraries(dir string, from []Use) {
	triplet := strings.Contains(filepath.Base(dir), "-linux-")
	var entries Names
	for _, e := range c.view.list(dir).entries {
		sub := filepath.Join(dir, e.name)
		switch {
		case e.isDir() && strings.Contains(e.name, "-linux-"):
			c.shrinkLibraries(sub, from)
		case e.isDir() && plainLibraryDir(e.name),
			e.isRegular() && isLibrary(e.name),
			e.isRegular() && c.linking && isObject(e.name),
			e.isRegular() && !triplet && !executable(sub):
			entries = append(entries, e.grantName())
		}
	}
	c.putSplit(dir, entries, from)
}

// putSplit puts a split grant for reading, unless the whole is granted already.
func (c *compiler) putSplit(dir string, entries Names, from []Use) {
	if slices.ContainsFunc(c.plan.grants, func(g Grant) bool { return g.Path == dir && !g.Split }) {
		return
	}
	l := c.view.list(dir)
	if l.err != nil {
		// What can't be listed can hardly be read: granted to nobody.
		c.closed = append(c.closed, Grant{Path: dir, From: from})
		return
	}
	slices.Sort(entries)
	c.put(Grant{
		Path: dir, Access: Read, Dir: true, ID: c.view.lstat(dir).id, From: from, Load: true,
		Split: true, Entries: entries, Changed: l.changed,
	})
}

// proveAllowed is the proof that `jail check` speaks of: with an allow list every
// grant that executes lies on what the list has brought.
func (c *compiler) proveAllowed() error {
	if len(c.plan.Allowed) == 0 {
		return nil
	}
	for _, g := range c.plan.grants {
		brought := func(a Allowed) bool { return g.Path == a.Path || a.Dir && within(g.Path, a.Path) }
		if g.Access&Exec != 0 && !slices.ContainsFunc(c.plan.Allowed, brought) {
			return &Problem{At: g.From[0].At, What: fmt.Sprintf("%q would be executed without being allowed: this is an error in jail", g.Path)}
		}
	}
	return nil
}

// isLibrary: libfoo.so, libfoo.so.1.2.
func isLibrary(name string) bool {
	return strings.HasSuffix(name, ".so") || strings.Contains(name, ".so.")
}

// isObject tells what a linker reads besides libraries.
func isObject(name string) bool {
	return slices.Contains([]string{".a", ".o", ".la", ".spec", ".specs", ".lds"}, filepath.Ext(name))
}

// plainLibraryDir knows directories that programs of all kinds read, and that
// hold no programs.
func plainLibraryDir(name string) bool {
	return slices.Contains([]string{
		"locale", "terminfo", "ssl", "file", "mime", "X11", "pkgconfig", "cmake", "gconv", "perl", "perl-base", "perl5",
		"engines-3", "engines-1.1", "ossl-modules", "krb5", "sasl2", "security", "nss", "icu", "audit", "ldscripts",
		"girepository-1.0", "pkcs11", "p11-kit-proxy", "charset.alias", "bfd-plugins", "libfakeroot",
	}, name)
}

func executable(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) != nil || fs.FileMode(st.Mode)&0o111 != 0
}
