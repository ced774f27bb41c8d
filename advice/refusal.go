package advice

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"jail/trace"
)

// Refusal is one way in which calls were refused.
type Refusal struct {
	Op    string `json:"op"`
	Want  string `json:"want,omitempty"`
	Path  string `json:"path,omitempty"`
	To    string `json:"address,omitempty"`
	Errno string `json:"errno"`
	// Layer: "landlock", "mounts", "seccomp", "supervisor"; "host" where jail has no
	// part in it; "unknown".
	Layer string `json:"layer"`
	// Outside is why the same is refused outside of jail as well; then nothing is
	// proposed.
	Outside string `json:"outside,omitempty"`
	// Rule and At are the rule that decides; both are empty where it is the absence
	// of one.
	Rule   string `json:"rule,omitempty"`
	At     string `json:"at,omitempty"`
	Why    string `json:"why"`
	Allow  *Rule  `json:"allow,omitempty"`
	Secret bool   `json:"secret,omitempty"`
	// Usual: programs try this and go another way when it is not there.
	Usual    bool     `json:"usual,omitempty"`
	Count    int      `json:"count"`
	Programs []string `json:"programs"`
}

// Refusals collects them.
type Refusals struct {
	list []*Refusal
	by   map[sameness]*Refusal
}

// sameness is what makes two refusals the same.
type sameness struct{ op, want, path, to, errno, layer string }

func (r *Refusals) add(one Refusal, program string) {
	key := sameness{one.Op, one.Want, one.Path, one.To, one.Errno, one.Layer}
	known := r.by[key]
	if known == nil {
		if r.by == nil {
			r.by = map[sameness]*Refusal{}
		}
		known = &one
		r.by[key] = known
		r.list = append(r.list, known)
	}
	known.Count++
	if !slices.Contains(known.Programs, program) {
		known.Programs = append(known.Programs, program)
	}
}

// List is all of them, the most frequent first.
func (r *Refusals) List() []Refusal {
	out := make([]Refusal, len(r.list))
	for i, one := range r.list {
		out[i] = *one
	}
	slices.SortStableFunc(out, func(a, b Refusal) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

func errnoName(e unix.Errno) string { return cmp.Or(unix.ErrnoName(e), e.Error()) }

// words says what a call wanted.
func words(w trace.Want) string {
	var out []string
	for _, n := range []struct {
		bit  trace.Want
		name string
	}{{trace.Read, "read"}, {trace.Write, "write"}, {trace.Exec, "exec"}, {trace.Load, "load"}, {trace.Attribute, "change"}} {
		if w&n.bit != 0 {
			out = append(out, n.name)
		}
	}
	return strings.Join(out, "+")
}
