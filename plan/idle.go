package plan

import (
	"fmt"

	"jail/rules"
)

// Idle says which rules do nothing in this run, because without mounts there is no
// supervisor. None of them keeps anything from the jail: what it writes is not
// executed at all then. But who wrote them expects something else.
func (p Plan) Idle() []string {
	if p.Mounts {
		return nil
	}
	var out []string
	if len(p.Guides) > 0 {
		out = append(out, fmt.Sprintf("without mounts no advice is given ([[guide]] at %s)", p.Guides[0].From))
	}
	if at := p.Artifacts.At; at.File != "" && !(p.Artifacts.Run.Off && p.Artifacts.Libraries.Off) {
		out = append(out, fmt.Sprintf("without mounts nothing is sealed, and what is built inside does not run ([artifact] at %s)", at))
	}
	return out
}

// wroteArtifact is where the first rule of [artifact] is that is not of a profile.
func wroteArtifact(a rules.Artifact) Origin {
	at := []Origin{a.Asked, a.Run.From, a.Libraries.From, a.Network.From}
	for _, d := range a.Deny {
		at = append(at, d.From)
	}
	for _, w := range a.Write {
		at = append(at, w.From)
	}
	for _, o := range at {
		if _, isProfile := o.Profile(); o.File != "" && !isProfile {
			return o
		}
	}
	return Origin{}
}
