package cli

import (
	"fmt"
	"slices"
	"strings"

	"jail/plan"
	"jail/rules"
)

// reportArtifacts is what becomes of files that the jail wrote and then executes.
type reportArtifacts struct {
	Run       string        `json:"run"` // "seal" or "deny"
	Libraries string        `json:"libraries"`
	Why       []string      `json:"why"` // rules that turned something off
	Network   bool          `json:"network"`
	Write     []string      `json:"write"`
	Deny      []reportRule  `json:"deny"`
	Drop      []string      `json:"drop"` // patterns of variables
	Limits    []reportLimit `json:"limits"`
	Guides    []reportRule  `json:"guides"`
}

func artifactsOf(p plan.Plan) reportArtifacts {
	a := p.Artifacts
	libraries := a.Libraries
	if a.Run.Off { // then nothing is sealed
		libraries = a.Run
	}
	r := reportArtifacts{
		Run: sealOrDeny(p, a.Run), Libraries: sealOrDeny(p, libraries), Why: []string{}, Network: !a.Network.Off, Write: []string{},
		Deny:   each(a.Deny, func(d plan.NeverSealed) reportRule { return reportRule{d.Pattern, d.At.String()} }),
		Drop:   append([]string{}, a.Drop...),
		Limits: each(a.Limits, func(l plan.Limit) reportLimit { return reportLimit{l.Name, l.Value} }),
		Guides: each(p.Guides, func(g rules.Guide) reportRule { return reportRule{strings.Join(g.Match, " "), g.From.String()} }),
	}
	if !p.Mounts {
		r.Why = append(r.Why, "without mounts there is no supervisor: nothing is sealed, no guide is given")
	}
	for name, c := range map[string]rules.Choice{"run": a.Run, "libraries": a.Libraries, "network": a.Network} {
		if c.Off {
			r.Why = append(r.Why, fmt.Sprintf("%s: %s", name, c.From))
		}
	}
	slices.Sort(r.Why)
	for g := range p.ForArtifacts().Grants() {
		if g.Access&plan.Write != 0 && !strings.HasPrefix(g.Path, "/dev/") {
			r.Write = append(r.Write, g.Path)
		}
	}
	return r
}

func sealOrDeny(p plan.Plan, c rules.Choice) string {
	if c.Off || !p.Supervised() {
		return "deny"
	}
	return "seal"
}

func (r report) artifactText(p *page) {
	a := r.Artifacts
	p.head("what the jail writes and then executes (artifacts)")
	p.line("run       %s, libraries %s", a.Run, a.Libraries)
	for _, why := range a.Why {
		p.line("          %s", oneLine(why))
	}
	if a.Run == "seal" {
		write := each(a.Write, p.path)
		p.line("write     %s, and the private TMPDIR", strings.Join(write, " "))
		if !a.Network {
			p.line("network   no internet sockets")
		}
		if len(a.Drop) > 0 {
			p.line("without   %s", oneLine(strings.Join(a.Drop, " ")))
		}
	}
	for _, d := range a.Deny {
		p.line("never     %s  %s", p.path(d.Text), d.At)
	}
	for _, g := range r.Artifacts.Guides {
		p.line("guide     %s  %s", oneLine(g.Text), g.At)
	}
}
