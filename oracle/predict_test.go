package oracle_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"jail/mounts"
	"jail/oracle"
	"jail/plan"
)

// predictor foretells operations from what a plan says: Access, and the carve-outs,
// of which Access says that they are not its own. For names it needs to know where
// one mount ends and the next begins.
type predictor struct {
	plan     plan.Plan
	inner    *plan.Plan // the domain of artifacts, if that is where
	mounts   []string   // where mounts begin
	points   []place    // the same
	reopened []plan.Reopened
	binds    int // so many of the mounts are the host's
}

// place is a name in a directory, by whatever path the directory is reached: where
// something is mounted no path to it removes the name.
type place struct {
	dev, ino uint64
	name     string
}

func placeOf(path string) place {
	var st unix.Stat_t
	unix.Stat(filepath.Dir(path), &st)
	return place{st.Dev, st.Ino, filepath.Base(path)}
}

func newPredictor(p plan.Plan, binds []string) predictor {
	out := predictor{plan: p, mounts: binds, binds: len(binds)}
	for _, m := range binds {
		out.points = append(out.points, placeOf(m))
	}
	if !p.Mounts {
		return out
	}
	out.setReopened(p)
	out.plan = p.Without(out.hidden) // a rule on something hidden is not made, so its other names have nothing of it
	l := mounts.Compile(p, p.Temp)
	for _, t := range l.Trees {
		out.mounts = append(out.mounts, t.Path)
		out.points = append(out.points, placeOf(t.Path))
	}
	for _, c := range l.Covers {
		out.mounts = append(out.mounts, c.Path)
		if !inNothing(c.Path, l.Covers) {
			out.points = append(out.points, placeOf(c.Path))
		}
	}
	return out
}

// inNothing tells whether the place of a mount is one that was made for it, in what
// hides the rest.
func inNothing(path string, covers []mounts.Cover) bool {
	var around mounts.Cover
	for _, c := range covers {
		if c.Path != path && within(path, c.Path) && len(c.Path) > len(around.Path) {
			around = c
		}
	}
	return around.Kind == mounts.Hide
}

// setReopened leaves out what has nothing around it that is held: there is nothing
// to reopen.
func (p *predictor) setReopened(of plan.Plan) {
	for _, r := range of.Reopened {
		if slices.ContainsFunc(of.Carves, func(c plan.Carve) bool { return c.Open() && !c.Glob && within(r.Path, c.Path) }) {
			p.reopened = append(p.reopened, r)
		}
	}
}

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// allows tells whether the operation succeeds.
func (p predictor) allows(o oracle.Op) bool {
	switch o.Do {
	case "unlink", "rename", "exchange", "link":
		return p.moves(o)
	case "create", "mkdir", "symlink", "fifo":
		dir, ok := p.real(filepath.Dir(o.Path))
		return ok && p.access(filepath.Join(dir, "a new name"))&plan.Write != 0
	}
	real, ok := p.real(o.Path)
	if !ok {
		return false
	}
	switch a := p.access(real); {
	case o.Do == "read":
		return a&plan.Read != 0
	case o.Do == "exec":
		return a&plan.Exec != 0
	case (o.Do == "chmod" || o.Do == "utime") && !p.plan.Mounts:
		return true // Landlock has no right for it: the waiver says so
	case o.Do == "chmod" || o.Do == "utime":
		p.inner = nil // and the mounts of artifacts are the jail's
		return p.access(real)&plan.Write != 0
	default:
		return a&plan.Write != 0
	}
}

// both names a file that may be written and executed, by whatever names.
func (p predictor) both(all []entry) string {
	type inode struct{ dev, ino uint64 }
	has := map[inode]plan.Access{}
	for _, e := range all {
		var st unix.Stat_t
		real, ok := p.real(e.path)
		if !ok || unix.Stat(real, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		id := inode{st.Dev, st.Ino}
		if has[id] |= p.access(real); has[id]&plan.Write != 0 && has[id]&plan.Exec != 0 {
			return e.path
		}
	}
	return ""
}

func (p predictor) moves(o oracle.Op) bool {
	from, ok := p.real(filepath.Dir(o.Path))
	if !ok || p.access(from)&plan.Write == 0 {
		return false
	}
	old := filepath.Join(from, filepath.Base(o.Path))
	if o.Do == "unlink" {
		return !slices.Contains(p.points, placeOf(old))
	}
	to, ok := p.real(filepath.Dir(o.To))
	if !ok || p.access(to)&plan.Write == 0 || p.mount(from) != p.mount(to) {
		return false
	}
	switch o.Do {
	case "link":
		return p.mount(old) == p.mount(to)
	case "exchange":
		return !p.holds(old) && !p.holds(filepath.Join(to, filepath.Base(o.To)))
	}
	return !p.holds(old)
}

// holds tells whether a mount at or beneath a path keeps it in its place.
func (p predictor) holds(path string) bool {
	if slices.Contains(p.points, placeOf(path)) {
		return true
	}
	for _, m := range p.mounts[p.binds:] { // those of the host move with the directory
		if within(m, path) {
			return true
		}
	}
	return false
}

// mount is the innermost mount that a real path lies on.
func (p predictor) mount(path string) (in string) {
	for _, m := range p.mounts {
		if within(path, m) && len(m) > len(in) {
			in = m
		}
	}
	return in
}

// access is what the plan says of a real path, carve-outs included, the outermost
// first: what is deeper is put on what is there.
func (p predictor) access(real string) plan.Access {
	a := p.plan.Access(real)
	if p.inner != nil {
		a &= p.inner.Access(real)
	}
	if !p.plan.Mounts {
		return a
	}
	taken := plan.Access(0)
	for dir := "/"; ; {
		taken = p.cover(dir, taken)
		if dir == real {
			return a &^ taken
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(real[len(dir):], "/"), "/")
		dir = filepath.Join(dir, name)
	}
}

// cover is what is taken away at a path, when taken is what is around it.
func (p predictor) cover(path string, taken plan.Access) plan.Access {
	for _, c := range p.plan.Carves {
		switch {
		case !c.Open() || c.Glob || c.Path != path:
		case c.Hide:
			taken = plan.Read | plan.Write | plan.Exec
		default:
			taken |= plan.Write
		}
	}
	for _, r := range p.reopened {
		if r.Path == path {
			taken = (plan.Read | plan.Write | plan.Exec) &^ r.Access
		}
	}
	return taken
}

// real follows links as the kernel will in the jail: nothing is looked up in what
// is hidden, but the way to what is reopened.
func (p predictor) real(path string) (real string, ok bool) {
	rest, at := strings.Split(path, "/"), "/"
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		if !p.passable(at, next) {
			return "", false
		}
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > 40 {
			return "", false
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, true
}

func (p predictor) passable(dir, next string) bool {
	if !p.plan.Mounts || !p.hidden(dir) {
		return true
	}
	for _, r := range p.reopened {
		if within(r.Path, next) && p.cover(r.Path, 0)&plan.Read == 0 {
			return true
		}
	}
	return false
}

// hidden tells whether what is at a path is covered by something empty.
func (p predictor) hidden(real string) bool {
	hidden := false
	for dir := "/"; ; {
		if taken := p.cover(dir, 0); taken&plan.Read != 0 {
			hidden = true
		} else if p.reopens(dir) {
			hidden = false
		}
		if dir == real {
			return hidden
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(real[len(dir):], "/"), "/")
		dir = filepath.Join(dir, name)
	}
}

func (p predictor) reopens(path string) bool {
	for _, r := range p.reopened {
		if r.Path == path {
			return true
		}
	}
	return false
}
