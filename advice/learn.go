package advice

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"jail/plan"
	"jail/trace"
)

// Learner notes what a run used that a plan would have refused.
type Learner struct {
	Places
	plan   plan.Plan // the one that is to be completed, as compiled
	reader trace.Reader
	needs  map[string]*need
	ports  map[string]*need // by address
	Used   map[string]int   // rules of the plan that were used, as written
}

// need is what was done at a path, and by whom.
type need struct {
	path   string
	access plan.Access
	dir    bool // it was made as, or is, a directory
	built  bool // a program that was built here wrote it
	by     []string
}

func (n *need) add(a plan.Access, program string) {
	n.access |= a
	if !slices.Contains(n.by, program) {
		n.by = append(n.by, program)
	}
}

// NewLearner takes the plan that the rules so far amount to.
func NewLearner(p plan.Plan, places Places) *Learner {
	return &Learner{
		Places: places, plan: p, reader: trace.NewReader(),
		needs: map[string]*need{}, ports: map[string]*need{}, Used: map[string]int{},
	}
}

// See takes a call that has ended; its task is still stopped.
func (l *Learner) See(c trace.Call) {
	if c.Errno() != 0 && !l.refused(c) {
		return
	}
	for _, u := range l.reader.Uses(c) {
		l.use(u, c)
	}
}

// refused lets connections be noted that stay closed while learning.
func (l *Learner) refused(c trace.Call) bool {
	uses := l.reader.Uses(c)
	return len(uses) > 0 && uses[0].Want == trace.Connect && (c.Errno() == unix.EACCES || strings.HasPrefix(uses[0].Address, "tcp:"))
}

func (l *Learner) use(u trace.Use, c trace.Call) {
	a := access(u.Want)
	switch _, private := privateDir(u.Path); {
	case u.Want == trace.Connect && !(c.Result >= 0 && strings.HasPrefix(u.Address, "unix:")):
		note(l.ports, u.Address, 0, c.Task)
	case a == 0, u.Path == "", within(u.Path, "/proc"), c.Turned, l.optional(u.Path, u.Op):
	case l.plan.Reason(u.Path, a).Decision == plan.Granted:
		l.Used[l.plan.Reason(u.Path, a).Rule]++
	case private && !within(u.Path, l.Home) && !within(u.Path, l.Root):
	default:
		n := note(l.needs, u.Path, a, c.Task)
		n.dir = n.dir || u.Op == "mkdir" || isDir(u.Path)
		n.built = n.built || c.Inner && a&plan.Write != 0
	}
}

func note(in map[string]*need, path string, a plan.Access, task int) *need {
	if in[path] == nil {
		in[path] = &need{path: path}
	}
	in[path].add(a, trace.Program(task))
	return in[path]
}

// Line is one element of a proposed list.
type Line struct {
	Rule
	By []string
	of []need // what it is for
}

// Left is what is not proposed.
type Left struct {
	Path, Why string
	By        []string
}

// ForArtifacts are the lines of [artifact] write, where programs that were built here
// wrote elsewhere than they may: naming a path there replaces what they may write
// otherwise, so the project is among them.
func (l *Learner) ForArtifacts(lines []Line) (out []Line) {
	for _, x := range lines {
		if x.Key != "read" && x.Key != "exec" && slices.ContainsFunc(x.of, func(n need) bool { return n.built }) {
			x.Table, x.Key = "artifact", "write"
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		return nil
	}
	project := Line{Rule: Rule{"artifact", "write", quote(".")}, By: []string{"the project, as without this list"}}
	return append([]Line{project}, out...)
}

// Missing lists what a plan still refuses of what was used.
func (l *Learner) Missing(p plan.Plan) (out []string) {
	for path, n := range l.needs {
		if r := p.Reason(path, n.access); r.Decision == plan.NoGrant && !(n.dir && holds(p, path)) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// Propose is what would let a run do the same under a plan: few lines, and what is
// not for granting.
func (l *Learner) Propose(p plan.Plan) (lines []Line, left []Left) {
	for _, n := range l.sorted() {
		r := p.Reason(n.path, n.access)
		switch {
		case r.Decision == plan.Granted, r.Decision == plan.Writable && p.Seals(), n.dir && holds(p, n.path):
			continue
		case l.Secret(n.path):
			left = append(left, Left{n.path, "a secret, or named like one", n.by})
			continue
		case r.Decision == plan.Executed:
			left = append(left, Left{n.path, "lies where programs are executed from: install outside", n.by})
			continue
		}
		if unwritable(n.path) {
			left = append(left, Left{n.path, "no rule file can name it", n.by})
			continue
		}
		key, path := l.place(n)
		if path == "" {
			left = append(left, Left{n.path, "what would grant it is too much", n.by})
			continue
		}
		lines = join(lines, l.line(key, path, n))
	}
	return l.collapse(lines), left
}

// holds tells whether a directory is there from the start, since a grant lies in it.
func holds(p plan.Plan, dir string) bool {
	for g := range p.Grants() {
		if within(g.Path, dir) {
			return true
		}
	}
	return false
}

func (l *Learner) sorted() []need {
	var out []need
	for _, n := range l.needs {
		out = append(out, *n)
	}
	slices.SortFunc(out, func(a, b need) int { return strings.Compare(a.path, b.path) })
	return out
}

func (l *Learner) line(key, path string, n need) Line {
	text := l.write(path)
	if key != "create" && !within(path, l.Root) {
		text += "?"
	}
	return Line{Rule{"files", key, quote(text)}, n.by, []need{n}}
}

// place chooses the directory of the program, the file alone, or nothing.
func (l *Learner) place(n need) (key, path string) {
	unit, ok := l.Unit(n.path)
	switch {
	case within(n.path, "/dev") || within(n.path, "/sys"):
		return map[bool]string{true: "write", false: "read"}[n.access&plan.Write != 0], n.path
	case n.access&plan.Exec != 0:
		return "exec", l.tool(n.path)
	case n.access&plan.Write == 0 && ok && isDir(unit):
		return "read", unit
	case n.access&plan.Write == 0 && isDir(n.path) && l.tooWide(n.path):
		return "", ""
	case n.access&plan.Write == 0:
		return "read", n.path
	case within(n.path, l.Root):
		return "write", l.Root
	case ok && (isDir(unit) || unit != n.path):
		return "create", unit
	case n.dir && !l.tooWide(n.path):
		return "create", n.path
	}
	if dir := filepath.Dir(n.path); !l.tooWide(dir) {
		return "write", dir
	}
	if isFile(n.path) {
		return "write", n.path
	}
	return "", ""
}

// join puts lines of the same rule together.
func join(lines []Line, one Line) []Line {
	for i, known := range lines {
		if known.Rule != one.Rule {
			continue
		}
		for _, by := range one.By {
			if !slices.Contains(known.By, by) {
				lines[i].By = append(lines[i].By, by)
			}
		}
		lines[i].of = append(lines[i].of, one.of...)
		return lines
	}
	return append(lines, one)
}

// crowd is how many files of one directory are named before the directory is.
const crowd = 3

// collapse names the directory instead of many files in it, as long as it is not
// too much, and leaves out what another line covers.
func (l *Learner) collapse(lines []Line) []Line {
	for {
		count := map[string]int{}
		parent := func(x Line) string {
			if dir := filepath.Dir(x.of[0].path); x.Key == "read" && len(x.of) == 1 && !l.tooWide(dir) {
				return dir
			}
			return ""
		}
		for _, x := range lines {
			count[parent(x)]++
		}
		var out []Line
		changed := false
		for _, x := range lines {
			if dir := parent(x); dir != "" && count[dir] > crowd {
				y := l.line(x.Key, dir, need{path: dir, access: x.of[0].access, dir: true, by: x.By})
				out, changed = join(out, y), true
				continue
			}
			out = join(out, x)
		}
		lines = out
		if !changed {
			return l.covered(lines)
		}
		for i := range lines { // a directory that stands for many is one again
			lines[i].of = lines[i].of[:1]
		}
	}
}

// covered drops what may be read because it may be written or executed, and what
// lies beneath another line of the same kind.
func (l *Learner) covered(lines []Line) []Line {
	path := func(x Line) string { return strings.TrimSuffix(strings.Trim(x.Value, `"`), "?") }
	out := slices.DeleteFunc(slices.Clone(lines), func(x Line) bool {
		return slices.ContainsFunc(lines, func(y Line) bool {
			return x.Rule != y.Rule && within(path(x), path(y)) && (x.Key == "read" || x.Key == y.Key)
		})
	})
	slices.SortFunc(out, func(a, b Line) int { return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Value, b.Value)) })
	return out
}

// Contacts lists addresses with who wanted them.
func (l *Learner) Contacts() []string {
	var out []string
	for to, n := range l.ports {
		out = append(out, fmt.Sprintf("%s (%s)", to, strings.Join(n.by, ", ")))
	}
	slices.Sort(out)
	return out
}
