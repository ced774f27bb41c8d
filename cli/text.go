package cli

import (
	"fmt"
	"slices"
	"strings"

	"jail/plan"
)

// page is the report for people while it is being written.
type page struct {
	strings.Builder
	home string
}

func (p *page) head(s string) { fmt.Fprintf(p, "\n%s\n", s) }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, "  "+format+"\n", args...) }

// path is how a path is written: ~ for HOME, and never more than one line.
func (p *page) path(s string) string { return oneLine(tilde(s, p.home)) }

// text is the report for people.
func (r report) text(home string) string {
	p := &page{home: home}
	r.topText(p)
	r.commandText(p)
	r.grantText(p)
	r.proofText(p)
	r.carveText(p)
	r.artifactText(p)
	r.promiseText(p)
	r.environmentText(p)
	r.limitText(p)
	r.optionText(p)
	r.missingText(p)
	r.noteText(p)
	if !r.Enforceable {
		fmt.Fprintf(p, "\nNOT ENFORCEABLE here: jail would refuse to start\n  %s\n", r.Hint)
	}
	return p.String()
}

func (r report) topText(p *page) {
	fmt.Fprintf(p, "project   %s\nprofiles  %s\nlandlock  ABI %d\ndigest    %s\n", oneLine(r.Tree), strings.Join(r.Profiles, ", "), r.Landlock, r.Digest)
	c := r.Command
	if c == nil {
		return
	}
	if c.Error == "" {
		fmt.Fprintf(p, "command   %s\n          %s\n", oneLine(c.Path), oneLine(c.By))
	} else {
		fmt.Fprintf(p, "command   %s\n          %s\n", oneLine(c.Error), oneLine(c.Hint))
	}
	for _, n := range c.Notes {
		fmt.Fprintf(p, "          %s\n", oneLine(n))
	}
}

func (r report) grantText(p *page) {
	p.head("grants (a path and all beneath it)")
	for _, g := range r.Grants {
		path := p.path(g.Path)
		if g.Create {
			path += " (will be made)"
		}
		if g.Split {
			path += fmt.Sprintf(" (%d entries)", g.Entries)
		}
		at := each(g.Rules, func(r reportRule) string { return r.At })
		p.line("%-12s %-44s %s", strings.TrimPrefix(g.Access, "read+"), path, strings.Join(at, ", "))
	}
}

// carveText lists the carve-outs that say something: those that no grant
// reaches hold by themselves and are only counted.
func (r report) carveText(p *page) {
	p.head("carve-outs")
	idle := 0
	for _, c := range r.CarveOuts {
		if c.State == "not held" || strings.HasPrefix(c.State, "held by") {
			p.line("%-12s %-44s %s (%s)", c.Kind, p.path(c.Path), c.At, c.State)
		} else {
			idle++
		}
	}
	for _, o := range r.Reopened {
		p.line("%-12s %-44s %s (%s, in %s)", "reopened", p.path(o.Path), o.At, o.Access, p.path(o.In))
	}
	p.line("%d more are absent or in no grant (--json lists them)", idle)
}

func (r report) promiseText(p *page) {
	p.head("promises")
	for _, pr := range r.Promises {
		p.line("%s", promiseLine(pr))
		if pr.Held() && !pr.Waived {
			continue
		}
		for _, l := range pr.Lost {
			p.line("           %s", oneLine(l))
		}
	}
}

func promiseLine(pr plan.Promise) string {
	switch {
	case pr.Waived:
		return fmt.Sprintf("WAIVED   %s (%s)", pr.Text, pr.From)
	case pr.Opened != "":
		return fmt.Sprintf("open     %s: %s", pr.Text, pr.Opened)
	case len(pr.By) > 0:
		return fmt.Sprintf("held     %s (%s)", pr.Text, strings.Join(pr.By, ", "))
	}
	return "NOT HELD " + pr.Text
}

func (r report) environmentText(p *page) {
	p.head("environment")
	names := func(list []string) string { return oneLine(strings.Join(list, ", ")) }
	p.line("passed   %s", names(r.Environment.Passed))
	p.line("private  %s (lost at exit)", names(r.Environment.Private))
	if len(r.Environment.Dropped) > 0 {
		p.line("dropped  %s", names(r.Environment.Dropped))
	}
}

func (r report) limitText(p *page) {
	if len(r.Limits) == 0 {
		return
	}
	p.head("limits of each process")
	for _, l := range r.Limits {
		p.line("%-12s %d", l.Name, l.Value)
	}
}

func (r report) optionText(p *page) {
	if len(r.Options) == 0 {
		return
	}
	p.head("start options")
	for _, o := range r.Options {
		p.line("%s %s\n             %s", o.Profile, strings.Join(o.Options, " "), o.Why)
	}
}

func (r report) missingText(p *page) {
	if len(r.Missing) == 0 {
		return
	}
	p.head("absent, and allowed to be")
	names := each(r.Missing, func(m reportRule) string { return m.Text })
	for row := range slices.Chunk(names, 3) {
		p.line("%s", oneLine(strings.Join(row, "  ")))
	}
}

func (r report) noteText(p *page) {
	if len(r.Notes) == 0 {
		return
	}
	p.head("notes")
	for _, n := range r.Notes {
		p.line("%s", oneLine(n))
	}
}
