package cli

import (
	"fmt"
	"strings"
)

// text is the report for people.
func (r report) text(home string) string {
	var b strings.Builder
	head := func(s string) { fmt.Fprintf(&b, "\n%s\n", s) }
	fmt.Fprintf(&b, "project   %s\nprofiles  %s\nlandlock  ABI %d\n", oneLine(r.Tree), strings.Join(r.Profiles, ", "), r.Landlock)
	if c := r.Command; c != nil {
		r.commandText(&b)
	}

	head("grants (a path and all beneath it)")
	for _, g := range r.Grants {
		path := oneLine(tilde(g.Path, home))
		if g.Create {
			path += " (will be made)"
		}
		fmt.Fprintf(&b, "  %-12s %-44s %s\n", strings.TrimPrefix(g.Access, "read+"), path, at(g.Rules))
	}
	r.carveText(head, &b, home)

	head("promises")
	for _, p := range r.Promises {
		switch {
		case p.Waived:
			fmt.Fprintf(&b, "  WAIVED   %s (%s)\n", p.Text, p.From)
		case p.Opened != "":
			fmt.Fprintf(&b, "  open     %s: %s\n", p.Text, p.Opened)
		case len(p.By) > 0:
			fmt.Fprintf(&b, "  held     %s (%s)\n", p.Text, strings.Join(p.By, ", "))
		default:
			fmt.Fprintf(&b, "  NOT HELD %s\n", p.Text)
		}
		for _, l := range p.Lost {
			if p.Waived || !p.Held() {
				fmt.Fprintf(&b, "             %s\n", oneLine(l))
			}
		}
	}

	head("environment")
	fmt.Fprintf(&b, "  passed   %s\n", strings.Join(r.Environment.Passed, ", "))
	fmt.Fprintf(&b, "  private  %s (lost at exit)\n", strings.Join(r.Environment.Private, ", "))
	if len(r.Environment.Dropped) > 0 {
		fmt.Fprintf(&b, "  dropped  %s\n", strings.Join(r.Environment.Dropped, ", "))
	}
	r.restText(head, &b)
	return b.String()
}

func (r report) commandText(b *strings.Builder) {
	c := r.Command
	if c.Error == "" {
		fmt.Fprintf(b, "command   %s\n", oneLine(c.Path))
	} else {
		fmt.Fprintf(b, "command   %s\n          %s\n", oneLine(c.Error), oneLine(c.Hint))
	}
	for _, n := range c.Notes {
		fmt.Fprintf(b, "          %s\n", oneLine(n))
	}
}

// carveText lists the carve-outs that say something: those that no grant
// reaches hold by themselves and are only counted.
func (r report) carveText(head func(string), b *strings.Builder, home string) {
	head("carve-outs")
	idle := 0
	for _, c := range r.CarveOuts {
		if c.State == "not held" || strings.HasPrefix(c.State, "held by") {
			fmt.Fprintf(b, "  %-12s %-44s %s (%s)\n", c.Kind, oneLine(tilde(c.Path, home)), c.At, c.State)
		} else {
			idle++
		}
	}
	fmt.Fprintf(b, "  %d more are absent or in no grant (--json lists them)\n", idle)
}

func (r report) restText(head func(string), b *strings.Builder) {
	if len(r.Limits) > 0 {
		head("limits of each process")
		for name, v := range r.Limits {
			fmt.Fprintf(b, "  %-12s %v\n", name, v)
		}
	}
	if len(r.Options) > 0 {
		head("start options")
		for _, o := range r.Options {
			fmt.Fprintf(b, "  %s %s\n             %s\n", o.Profile, strings.Join(o.Options, " "), o.Why)
		}
	}
	if len(r.Missing) > 0 {
		head("absent, and allowed to be")
		var names []string
		for _, m := range r.Missing {
			names = append(names, m.Text)
		}
		fmt.Fprintf(b, "  %s\n", strings.Join(names, " "))
	}
	if len(r.Notes) > 0 {
		head("notes")
		for _, n := range r.Notes {
			fmt.Fprintf(b, "  %s\n", oneLine(n))
		}
	}
	if !r.Enforceable {
		fmt.Fprintf(b, "\nNOT ENFORCEABLE here: jail would refuse to start\n  %s\n", r.Hint)
	}
}

func at(rules []reportRule) string {
	var s []string
	for _, r := range rules {
		s = append(s, r.At)
	}
	return strings.Join(s, ", ")
}
