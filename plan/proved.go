package plan

import (
	"path/filepath"
	"slices"
)

// Proof is what was looked at to prove W^X, beside the grants themselves. The
// answer was that no file is in a write tree and in an exec tree: a plan with
// another answer does not exist. Of hard links see also Host.Whole.
type Proof struct {
	Symlinks []Symlink // rules that lead elsewhere; the real paths were compared
	Mounts   int       // parts of file systems, each of write trees with each of exec trees
	Overlays []string  // trees on an overlay, of which the layers were compared as well
	Searched []string  // parts of exec trees in which the user could have made hard links
	Linked   int       // files there with more names than one: none lies in a write tree
}

// Symlink is a rule that names a symbolic link, or something below one.
type Symlink struct {
	Text   string
	Path   string // absolute
	Real   string
	Access Access
	At     Origin
}

// saw counts the parts of file systems that a tree consists of.
func (p *Proof) saw(pieces []piece) {
	p.Mounts += len(pieces)
	for _, x := range pieces {
		if x.name != x.seen && !slices.Contains(p.Overlays, x.seen) {
			p.Overlays = append(p.Overlays, x.seen)
		}
	}
}

// symlinks lists the rules that name a link.
func (c *compiler) symlinks() (out []Symlink) {
	for _, w := range c.written {
		if w.path != w.real && w.access&(Write|Exec) != 0 {
			out = append(out, Symlink{Text: w.text, Path: w.path, Real: w.real, Access: w.access, At: w.at})
		}
	}
	return out
}

// Nested is a grant inside another that gives the opposite: what is beneath both
// is what the inner one says, by the flags of its mount.
type Nested struct {
	Outer, Inner Grant
}

// Nested lists the exec trees in write trees and the write trees in exec trees.
func (p Plan) Nested() []Nested {
	var out []Nested
	for _, inner := range p.grants {
		if outer, ok := p.around(inner.Path); ok && opposite(outer.Access, inner.Access) {
			out = append(out, Nested{outer, inner})
		}
	}
	return out
}

// around is the nearest grant above a path that writes or executes.
func (p Plan) around(path string) (Grant, bool) {
	for path != "/" {
		path = filepath.Dir(path)
		i := slices.IndexFunc(p.grants, func(g Grant) bool { return g.Path == path && g.Access&(Write|Exec) != 0 })
		if i >= 0 {
			return p.grants[i], true
		}
	}
	return Grant{}, false
}

func opposite(a, b Access) bool { return a&Write != 0 && b&Exec != 0 || a&Exec != 0 && b&Write != 0 }

// Unpinned lists the allowed commands of which no digest was compared.
func (p Plan) Unpinned() []Allowed {
	return slices.DeleteFunc(slices.Clone(p.Allowed), func(a Allowed) bool {
		return a.For != "" || slices.ContainsFunc(p.grants, func(g Grant) bool { return g.Path == a.Path && g.Pin != nil })
	})
}
