package cli

import (
	"fmt"
	"strings"

	"jail/plan"
)

// reportCommands is what the rules say of programs.
type reportCommands struct {
	Allowed  []reportProgram `json:"allowed"` // empty: all that exec grants reach
	Denied   []reportProgram `json:"denied"`
	Upgrades string          `json:"upgrades"` // what happens to files that the jail wrote
}

type reportProgram struct {
	Path    string `json:"path"`
	Text    string `json:"text"`
	At      string `json:"at"`
	For     string `json:"for,omitempty"` // interpreter, helper, copy
	Message string `json:"message,omitempty"`
}

func commandsOf(p plan.Plan) reportCommands {
	return reportCommands{
		Allowed: each(p.Allowed, func(a plan.Allowed) reportProgram {
			return reportProgram{Path: a.Path, Text: a.Text, At: a.At.String(), For: a.For}
		}),
		Denied: each(p.Denied, func(d plan.Denied) reportProgram {
			r := reportProgram{Path: d.Path, Text: d.Text, At: d.At.String(), Message: d.Message}
			switch {
			case d.Applet:
				r.For = "built in"
			case d.Of != "":
				r.For = "other name or copy"
			}
			return r
		}),
		Upgrades: upgradesOf(p),
	}
}

func upgradesOf(p plan.Plan) string {
	switch {
	case len(p.Allowed) == 0:
		return ""
	case p.UpgradesOff.File != "":
		return fmt.Sprintf("off: what the jail writes never executes (%s)", p.UpgradesOff)
	}
	return `on: what the jail writes runs sealed (artifact.run = "seal" beside the list)`
}

func (r report) commandText(p *page) {
	if len(r.Commands.Allowed) > 0 {
		p.head("executes (proved: no grant executes anything else)")
		for _, a := range r.Commands.Allowed {
			p.line("%-12s %-44s %s %s", a.For, p.path(a.Path), a.At, oneLine(a.Text))
		}
		p.line("upgrades %s", r.Commands.Upgrades)
	}
	if len(r.Commands.Denied) == 0 {
		return
	}
	p.head("denied: neither executed nor read; nor is what appears beside it after the start")
	for _, d := range r.Commands.Denied {
		p.line("%-57s %s %s", p.path(d.Path), d.At, oneLine(strings.TrimSpace(d.Text+" "+d.For)))
	}
}
