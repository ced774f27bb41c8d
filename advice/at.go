package advice

import (
	"fmt"

	"jail/plan"
	"jail/trace"
)

// Answer is what decides about one kind of access to a path.
type Answer struct {
	Access  string `json:"access"`
	Allowed bool   `json:"allowed"`
	Why     string `json:"why"`
	At      string `json:"at,omitempty"`
	Allow   *Rule  `json:"allow,omitempty"`
}

// At explains what a plan allows at a path.
func At(p plan.Plan, places Places, path string) []Answer {
	e := &Explainer{Places: places, plan: p}
	var out []Answer
	for _, want := range []trace.Want{trace.Read, trace.Write, trace.Exec} {
		a := Answer{Access: words(want)}
		r := p.Reason(path, access(want))
		switch {
		case r.Decision == plan.Granted:
			a.Allowed, a.At, a.Why = true, r.At.String(), fmt.Sprintf("granted by %q", r.Rule)
		case r.Decision == plan.Writable && p.Seals():
			a.At, a.Why = r.At.String(), "not as it is: it may be written; a program is sealed when it is executed, and the copy runs"
		default:
			var one Refusal
			e.byPlan(&one, p, trace.Use{Op: "open", Want: want, Path: path})
			a.Why, a.At, a.Allow = one.Why, one.At, one.Allow
		}
		out = append(out, a)
	}
	return out
}
