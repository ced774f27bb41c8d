package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"jail/rules"
)

// Artifacts is the domain of what the jail has written and then executes: the
// agent's, less its keys, its own state, and most of what it may write.
type Artifacts struct {
	Run, Libraries rules.Choice // Off: never sealed
	Told           bool         // of files that [artifact] run = "deny" keeps from running the supervisor tells
	Network        rules.Choice // Off: no internet sockets
	Limits         []Limit
	Deny           []NeverSealed
	Drop           []string // patterns of variables that are not passed on
	At             Origin   // of the first of these rules that is no profile's
	write          []Grant
}

// NeverSealed is a pattern of paths that are never sealed.
type NeverSealed struct {
	Pattern string
	At      Origin
}

// artifacts compiles [artifact] and [[guide]].
func (c *compiler) artifacts() error {
	a := c.pol.Artifact()
	out := Artifacts{Run: a.Run, Libraries: a.Libraries, Network: a.Network, Limits: a.Limits, At: wroteArtifact(a)}
	if at, off := c.pol.UpgradesOff(); off {
		// With an allow list nobody has to be told: all else is not executed.
		out.Run, out.Libraries = rules.Choice{Off: true, From: at}, rules.Choice{Off: true, From: at}
	}
	out.Told = out.Run.Off && out.Run == a.Run
	for _, d := range a.Deny {
		if pattern, ok := c.absolute(d.Path); ok {
			out.Deny = append(out.Deny, NeverSealed{Pattern: pattern, At: d.From})
		}
	}
	for _, d := range a.Drop {
		out.Drop = append(out.Drop, d.Text)
	}
	out.Drop = append(out.Drop, c.agentsOwn()...)
	var err error
	if out.write, err = c.artifactWrites(a); err != nil {
		return err
	}
	c.plan.Artifacts, c.plan.Guides = out, c.pol.Guides()
	return nil
}

// artifactWrites is what artifacts may write, of what the jail may write: what
// [artifact] write names, else the project tree, caches and TMPDIR.
func (c *compiler) artifactWrites(a rules.Artifact) ([]Grant, error) {
	var out []Grant
	if !a.WriteSet {
		for _, g := range c.plan.grants {
			ours := slices.ContainsFunc(g.From, func(u Use) bool { return u.Access&Write != 0 && u.By == rules.ByToolchain })
			if g.Access&Write != 0 && (ours || within(g.Path, c.host.Tree.Root) || slices.Contains(c.host.Tree.Git, g.Path)) {
				out = append(out, g)
			}
		}
		return out, nil
	}
	for _, w := range a.Write {
		text, ok := c.absolute(w.Path)
		real, exists, err := c.view.real(text)
		switch {
		case !ok || err == nil && !exists && w.Path.Optional:
			continue
		case err != nil || !exists:
			return nil, &Problem{At: w.From, What: fmt.Sprintf("%q does not exist", w.Path.Text), Hint: `end the path with "?" if it may be absent`}
		case c.access(real)&Write == 0:
			return nil, &Problem{
				At: w.From, What: fmt.Sprintf("artifacts can't be given %q: the jail itself may not write it", w.Path.Text),
				Hint: "grant it in [files] write, or remove it here",
			}
		}
		n := c.view.lstat(real)
		out = append(out, Grant{
			Path: real, Access: Read | Write, Dir: n.mode.IsDir(), ID: n.id,
			From: []Use{{Access: Write, Text: w.Path.Text, At: w.From}},
		})
	}
	return out, nil
}

// ForArtifacts is the plan of the domain that artifacts run in, in addition to
// this one.
func (p Plan) ForArtifacts() Plan {
	out := p
	out.grants = nil
	for _, g := range p.grants {
		if g.isAgents() {
			continue
		}
		if !g.Made && !within(g.Path, "/dev") {
			g.Access &^= Write
		}
		out.grants = append(out.grants, g)
	}
	for _, w := range p.Artifacts.write {
		i := slices.IndexFunc(out.grants, func(g Grant) bool { return g.Path == w.Path })
		if i < 0 {
			out.grants = append(out.grants, w)
		} else {
			out.grants[i].Access |= w.Access & Write
		}
	}
	slices.SortFunc(out.grants, func(a, b Grant) int { return strings.Compare(a.Path, b.Path) })
	if p.Artifacts.Network.Off {
		out.Network = Network{Connect: rules.Ports{Set: true}, Bind: rules.Ports{Set: true}, UnixAny: p.Network.UnixAny}
	}
	out.Limits = p.Artifacts.Limits
	return out
}

// isAgents tells whether only an agent's profile grants this: it is the agent's
// own state or configuration, with its credentials. Its program is neither.
func (g Grant) isAgents() bool {
	return g.Access&Exec == 0 && !slices.ContainsFunc(g.From, func(u Use) bool { return u.By != rules.ByAgent })
}

// Denies tells whether a file may not be sealed because of its path.
func (a Artifacts) Denies(path string) (NeverSealed, bool) {
	for _, d := range a.Deny {
		if ok, err := doublestar.Match(d.Pattern, path); ok && err == nil || within(path, d.Pattern) {
			return d, true
		}
	}
	return NeverSealed{}, false
}

// Supervised tells whether the run needs a supervisor: to seal, to advise, to tell
// why nothing is sealed, to connect on behalf, or to be traced.
func (p Plan) Supervised() bool {
	return p.HasPlace() || p.Mounts && (p.Traced || p.Artifacts.Told || p.ConnectsOnBehalf())
}

// HasPlace tells whether the jail has [SealsDir]: for seals, or for the runner that
// gives advice.
func (p Plan) HasPlace() bool {
	return p.Mounts && (!p.Artifacts.Run.Off || !p.Artifacts.Libraries.Off || len(p.Guides) > 0)
}

// Seals tells whether what the jail may write can be executed, sealed.
func (p Plan) Seals() bool { return p.Supervised() && !p.Artifacts.Run.Off }

// SealsDir is where the jail finds what this run has sealed. It is a directory
// that jail makes in the private /run; what lies in it is mounted there, read-only,
// when the first file is sealed: a run that builds nothing leaves nothing behind.
const SealsDir = "/run/jail"

// WithSeals grants that directory.
func (p Plan) WithSeals() Plan {
	p.grants = append(slices.Clone(p.grants), Grant{
		Path: SealsDir, Access: Read | Exec, Dir: true, Made: true,
		From: []Use{{Access: Exec, Text: SealsDir, At: Origin{File: "seals of this run"}}},
	})
	slices.SortFunc(p.grants, func(a, b Grant) int { return strings.Compare(a.Path, b.Path) })
	return p
}

// sealsPlace refuses a grant of all of /run: it would show the host's, in which jail
// can't make its directory.
func (c *compiler) sealsPlace() error {
	if !c.plan.HasPlace() {
		return nil
	}
	run := filepath.Dir(SealsDir)
	for _, g := range c.plan.grants {
		if g.Path == run {
			return &Problem{
				At:   g.From[0].At,
				What: fmt.Sprintf("%q can't be granted as a whole: the jail has one of its own, in which what it has sealed is executed", g.Path),
				Hint: fmt.Sprintf("grant what is needed below %s", run),
			}
		}
	}
	return nil
}
