package plan

import (
	"fmt"
	"slices"
	"strings"

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
	i := slices.IndexFunc(at, func(o Origin) bool { return o.File != "" && !strings.HasPrefix(o.File, "profile ") })
	if i < 0 {
		return Origin{}
	}
	return at[i]
}

// peers says what it comes to that the kernel does not tell who listens: the
// supervisor then takes everybody for somebody outside.
func (c *compiler) peers() error {
	if c.plan.ConnectsOnBehalf() && !c.host.Peers.OK {
		c.remark("unix sockets of the jail itself can't be connected to, as little as those outside: %s", c.host.Peers.Why)
	}
	return nil
}

// sealsPlace refuses a grant of what jail makes anew to have a directory of its own.
func (c *compiler) sealsPlace() error {
	if !c.plan.Supervised() {
		return nil
	}
	for _, g := range c.plan.grants {
		if g.Path == runDir {
			return &Problem{
				At:   g.From[0].At,
				What: fmt.Sprintf("%q can't be granted as a whole: the jail has one of its own, in which what it has sealed is executed", g.Path),
				Hint: fmt.Sprintf("grant what is needed below %s", runDir),
			}
		}
	}
	return nil
}

const runDir = "/run"
