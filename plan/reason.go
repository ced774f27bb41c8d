package plan

import (
	"path/filepath"
	"slices"
)

// Decision is what decides about an access.
type Decision int

// The decisions. All but Granted refuse.
const (
	Granted   Decision = iota
	NoGrant            // no rule reaches the path
	Hidden             // a carve-out
	Protected          // a carve-out
	Writable           // execution: what may be written is executed by being sealed only
	Executed           // writing: what may be executed is not written
	Commands           // a deny rule or the allow list
)

// Reason is a decision with the rule behind it, and the layer that holds it.
type Reason struct {
	Decision Decision
	Layer    string
	At       Origin // zero: it is the absence of a rule
	Rule     string // as written, or the words of a refused command
}

// Reason tells what decides about an access. It asks the evaluator ([Plan.Explain])
// and the carve-outs, so that it says what the kernel does; file modes are not
// looked at.
func (p Plan) Reason(path string, want Access) Reason {
	a, why := p.Explain(path)
	if r, ok := p.carved(path, want); ok {
		return r
	}
	if want&Exec != 0 {
		if message, at, ok := p.RefusedCommand(path); ok {
			return Reason{Decision: Commands, Layer: "landlock", At: at, Rule: message}
		}
	}
	from := func(d Decision, layer string, a Access) Reason {
		u := rule(why, a)
		return Reason{Decision: d, Layer: layer, At: u.At, Rule: u.Text}
	}
	switch {
	case a&want == want && want == Read:
		return from(Granted, "", Read|Write|Exec)
	case a&want == want:
		return from(Granted, "", want&^Read)
	case want&Exec != 0 && a&Write != 0:
		return from(Writable, "mounts", Write)
	case want&Write != 0 && a&Exec != 0:
		return from(Executed, "landlock", Exec)
	}
	return Reason{Decision: NoGrant, Layer: "landlock"}
}

// carved finds the carve-out that takes the access away, unless a grant reopens it.
func (p Plan) carved(path string, want Access) (Reason, bool) {
	real, _, err := newView().real(filepath.Clean(path))
	if err != nil {
		real = filepath.Clean(path) // of a link that leads nowhere, its own place decides
	}
	reopened := slices.ContainsFunc(p.Reopened, func(r Reopened) bool { return within(real, r.Path) && want&^(r.Access|Read) == 0 })
	if reopened {
		return Reason{}, false
	}
	var out Reason
	for _, c := range p.Carves {
		if c.Glob || c.Absent || !within(real, c.Path) || !c.Hide && want&Write == 0 {
			continue
		}
		if out.Decision != Hidden {
			out = Reason{Decision: Protected, Layer: "mounts", At: c.At, Rule: c.Path}
		}
		if c.Hide {
			out.Decision, out.At, out.Rule = Hidden, c.At, c.Path
		}
		if !c.Open() {
			out.Layer = "landlock" // no grant reaches it, either
		}
	}
	return out, out.Decision != Granted
}
