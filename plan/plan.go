package plan

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"jail/digest"
	"jail/rules"
)

// Plan is a policy compiled for this host. The zero Plan grants nothing.
type Plan struct {
	grants []Grant

	Profiles []string
	Tree     Tree
	Home     string
	Cwd      string
	UID      int
	State    string // jail's own directory for what it keeps
	Temp     string // the private TMPDIR is made in this directory
	ABI      int    // the Landlock version that the rights are chosen for
	Mounts   bool   // the mounts layer is in use
	Traced   bool   // every call is looked at; this takes nothing away and gives nothing

	Carves       []Carve
	Reopened     []Reopened // inside carve-outs; the mounts layer gives it back
	Seeds        []Seed
	Repositories []string // .git files and directories, and bare repositories, in the project
	Guard        bool     // tell at the end what changed of the files that run on the host
	GuardFile    string   // and write it there, for machines
	Private      []Private
	Network      Network
	Unix         []string // real paths of the host's sockets that may be connected to
	Artifacts    Artifacts
	Guides       []rules.Guide
	Limits       []Limit
	Env          []string
	Path         string   // where commands are looked up
	Dropped      []string // names of variables that are not passed on
	Promises     []Promise
	Waivers      []rules.Waiver
	Missing      []Missing
	Options      []rules.StartOption

	Allowed     []Allowed // if any: nothing else is executed
	Denied      []Denied  // in no grant
	Messages    []Message
	UpgradesOff Origin // the allow list that keeps what the jail wrote from being executed
	Remarks     []string
	Proof       Proof
}

// Grant gives Access to the inode at Path and all beneath it.
type Grant struct {
	Path   string
	Access Access
	Dir    bool
	ID     ID   // zero when Create is still to be done
	Create bool // made at start, mode 0700
	Unix   bool // a socket of the host that may be connected to
	Made   bool // mounted by jail in the jail's own namespace: no ID to compare
	From   []Use

	// Split: the directory itself may be listed; of what is in it the grant
	// reaches the Entries, all and no others.
	Split   bool
	Entries Names
	Changed int64 // when the directory last changed: it must still be so at the start
	// Load leaves libraries beneath to be mapped executable, although Access has
	// no Exec: nothing there is a program.
	Load bool
	// Pin is the state of the file in which its digest was right.
	Pin *digest.State
}

// Use is one rule that contributed to a Grant.
type Use struct {
	Access Access
	Text   string // as written
	By     rules.By
	At     Origin
}

// Carve is a carve-out with its path made absolute; patterns stay patterns.
type Carve struct {
	Path    string
	Glob    bool
	Hide    bool
	Absent  bool
	Copy    bool   // protected, and the jail gets a copy to write
	Reached Access // what grants would allow there without the mounts layer
	At      Origin
}

// Seed is a file to copy at start if To is absent.
type Seed struct {
	File, To string
}

// Private is a directory made in the private TMPDIR, and the environment
// variable that points a program there.
type Private struct {
	Variable string
	Name     string
}

// Missing is an optional path that is not there.
type Missing struct {
	Text string
	At   Origin
}

// Grants yields the grants in the order of their paths.
func (p Plan) Grants() iter.Seq[Grant] { return slices.Values(p.grants) }

// Access answers what the kernel will allow on path: the union of the grants
// on the file itself and on every directory above it, by identity, as Landlock
// walks. Where write and execute meet, the mounts layer takes away the one that
// is granted further up; without it both are there, and Compile refuses the
// plan. Carve-outs are not asked for here: see Carves. Symbolic links are
// followed. A path that does not exist has the access of its parent.
func (p Plan) Access(path string) Access {
	a, _ := p.explain(newView(), path)
	return a
}

// Explain is Access with the grants that contributed, nearest first.
func (p Plan) Explain(path string) (Access, []Grant) {
	return p.explain(newView(), path)
}

// explain is the one evaluator.
func (p Plan) explain(v *view, path string) (Access, []Grant) {
	real, _, err := v.real(filepath.Clean(path))
	if err != nil {
		return 0, nil
	}
	var a Access
	var why []Grant
	for dir := real; ; dir = filepath.Dir(dir) {
		// Rules are one for each inode, but what is split may give more to one that has a
		// rule by another name.
		n := v.lstat(dir)
		for i := range p.grants {
			g := &p.grants[i]
			if !g.isOn(n, dir) {
				continue
			}
			a |= g.gives(v, dir, real)
			if g.reaches(v, dir, real) {
				why = append(why, *g)
			}
		}
		if dir == "/" {
			break
		}
	}
	more, through := p.throughEntries(v, real, a)
	return (a | more) &^ p.mountsDeny(real), append(why, through...)
}

// mountsDeny is what the flags of the mount at a real path take away: a mount
// has a place, not an identity, so here the path decides.
func (p Plan) mountsDeny(path string) Access {
	if !p.Mounts {
		return 0
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		for i := range p.grants {
			g := &p.grants[i]
			switch {
			case g.Path != dir || g.Access == Read && !g.Load:
			case g.Load:
				return Write
			default:
				return (Write | Exec) &^ g.Access
			}
		}
		if dir == "/" {
			return Write | Exec
		}
	}
}

// find returns the index of the grant on exactly this file or directory, -1 if
// there is none. Identity decides, so that a second name of a granted inode (a
// hard link, a bind mount) has its rights, as it has for the kernel.
func (p Plan) find(v *view, path string) int {
	n := v.lstat(path)
	for i := range p.grants {
		if p.grants[i].isOn(n, path) {
			return i
		}
	}
	return -1
}

func (g *Grant) isOn(n inode, path string) bool {
	return n.err == nil && g.ID == n.id || g.Path == path
}

// Holds tells whether a path can't be removed or renamed inside although what is
// around it may be written: a carve-out in it holds it in place.
func (p Plan) Holds(path string) bool {
	return p.Mounts && slices.ContainsFunc(p.Carves, func(c Carve) bool { return c.Open() && !c.Glob && within(c.Path, path) })
}

// WithTemp adds the private temporary directory, once it has been made.
func (p Plan) WithTemp(dir string) (Plan, error) {
	n := newView().lstat(dir)
	if n.err != nil {
		return Plan{}, n.err
	}
	p.grants = append(slices.Clone(p.grants), Grant{
		Path: dir, Access: Read | Write, Dir: true, ID: n.id,
		From: []Use{{Access: Write, Text: dir, At: Origin{File: "private TMPDIR"}}},
	})
	return p, nil
}

// WithPrivate adds the directories that the mounts layer makes anew, and forgets
// the identity of what it covers with something of its own.
func (p Plan) WithPrivate(dirs []string, covered func(path string) bool) Plan {
	p.grants = slices.Clone(p.grants)
	for i, g := range p.grants {
		if covered(g.Path) {
			p.grants[i].ID, p.grants[i].Made = ID{}, true
		}
	}
	for _, dir := range dirs {
		p.grants = slices.DeleteFunc(p.grants, func(g Grant) bool { return g.Path == dir })
		p.grants = append(p.grants, Grant{
			Path: dir, Access: Read | Write, Dir: true, Made: true,
			From: []Use{{Access: Write, Text: dir, At: Origin{File: "private " + dir}}},
		})
	}
	return p
}

// Without drops grants, also of artifacts, and entries of those that are split.
func (p Plan) Without(drop func(path string) bool) Plan {
	dropped := func(g Grant) bool { return drop(g.Path) }
	p.grants = slices.DeleteFunc(slices.Clone(p.grants), dropped)
	p.Artifacts.write = slices.DeleteFunc(slices.Clone(p.Artifacts.write), dropped)
	for i, g := range p.grants {
		p.grants[i].Entries = slices.DeleteFunc(slices.Clone(g.Entries), func(e string) bool { return drop(filepath.Join(g.Path, e)) })
	}
	return p
}

// WithCreated has make called for every directory that is still to be created
// and records what is there afterwards. A directory that came into being
// through a link, or that belongs to somebody else, is refused.
func (p Plan) WithCreated(make func(path string) error) (Plan, error) {
	p.grants = slices.Clone(p.grants)
	for i, g := range p.grants {
		if !g.Create {
			continue
		}
		if err := make(g.Path); err != nil {
			return Plan{}, err
		}
		v := newView()
		n := v.lstat(g.Path)
		real, _, err := v.real(g.Path)
		if err != nil || real != g.Path || !n.mode.IsDir() || n.uid != p.UID {
			return Plan{}, &Problem{At: g.From[0].At, What: fmt.Sprintf("%q was replaced while jail was starting", g.Path)}
		}
		p.grants[i].ID, p.grants[i].Create = n.id, false
	}
	return p, nil
}

// Enforceable returns an error when a promise is held by no layer of this host
// and no waiver accepts the loss.
func (p Plan) Enforceable() error {
	var lost []Promise
	for _, pr := range p.Promises {
		if !pr.Held() && !pr.Waived {
			lost = append(lost, pr)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return lostProblem(lost)
}
