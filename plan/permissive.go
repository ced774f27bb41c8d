package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Permissive is the plan under which a command is watched in order to learn what it
// needs: what lies on the disk may be read, written and executed, as far as the
// file modes go. It is no confinement: W^X does not hold under it.
//
// What stays closed: everything of seccomp, sockets of the host, other processes,
// the private directories, carve-outs (so secrets that exist), and own, jail's own
// directories, which may be read.
func (p Plan) Permissive(own []string) Plan {
	v := newView()
	var out []Grant
	for _, g := range p.grants {
		if apart(g.Path) {
			out = append(out, g)
		}
	}
	for _, dir := range p.onDisk() {
		real, exists, err := v.real(dir)
		i := slices.IndexFunc(out, func(g Grant) bool { return g.Path == real })
		if err != nil || !exists || i >= 0 && out[i].Access&Write != 0 && out[i].Access&Exec != 0 {
			continue
		}
		g := Grant{
			Path: real, Access: Read | Write | Exec, Dir: true, ID: v.lstat(real).id,
			From: []Use{{Access: Read | Write | Exec, Text: real, At: Origin{File: "learning"}}},
		}
		if i >= 0 {
			out[i] = g
		} else {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b Grant) int { return strings.Compare(a.Path, b.Path) })
	p.grants, p.Artifacts.write = out, out
	p.Carves = slices.Clone(p.Carves)
	for _, dir := range own {
		if real, exists, err := v.real(dir); err == nil && exists {
			p.Carves = append(p.Carves, Carve{Path: real, At: Origin{File: "jail's own files"}})
		}
	}
	for i, c := range p.Carves {
		if a, _ := p.explain(v, c.Path); !c.Glob && !c.Absent {
			p.Carves[i].Reached |= a
		}
	}
	return p
}

// apart tells whether a path lies where devices, processes and private directories
// are.
func apart(path string) bool {
	return slices.ContainsFunc([]string{"/dev", "/proc", "/sys", "/run", "/tmp", "/var/tmp"}, func(dir string) bool { return within(path, dir) })
}

// onDisk lists the directories at the top, and the project and HOME where they lie
// in one that is private.
func (p Plan) onDisk() []string {
	var out []string
	entries, _ := os.ReadDir("/") // without it nothing is learned, but nothing is opened either
	for _, e := range entries {
		if dir := filepath.Join("/", e.Name()); e.IsDir() && !apart(dir) {
			out = append(out, dir)
		}
	}
	for _, dir := range []string{p.Home, p.Tree.Root} {
		if apart(dir) {
			out = append(out, dir)
		}
	}
	return out
}
