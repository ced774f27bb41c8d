package cli

import (
	"cmp"
	"fmt"
	"strings"

	"jail/advice"
)

// text is the answer for people: what was refused, what the host refuses as well,
// and the rules that would allow the rest, as they stand in a rule file.
func (w whyAnswer) text(home string) string {
	p := &page{home: home}
	var host []advice.Refusal
	var rules []advice.Rule
	usual := 0
	for _, r := range w.Refusals {
		switch {
		case r.Usual:
			usual += r.Count
			continue
		case r.Layer == "host", r.Outside != "":
			host = append(host, r)
			continue
		}
		p.refusal(r)
		if r.Allow != nil {
			rules = append(rules, *r.Allow)
		}
	}
	if p.Len() == 0 {
		fmt.Fprintln(p, "nothing was refused by jail")
	}
	p.alsoOutside(host)
	if usual > 0 {
		p.head(fmt.Sprintf("%dx something that programs try, and do without (--json lists it)", usual))
	}
	if len(rules) > 0 {
		p.head("rules that would allow what has a rule (for a rule file; grant what you understand)")
		for line := range strings.Lines(advice.Merge(rules)) {
			p.line("%s", strings.TrimSuffix(line, "\n"))
		}
	}
	return p.String()
}

func (p *page) refusal(r advice.Refusal) {
	what := r.Op
	if r.Want != "" && r.Want != r.Op {
		what += " to " + r.Want
	}
	fmt.Fprintf(p, "%dx %s %s  (%s)\n", r.Count, what, p.path(cmp.Or(r.Path, r.To)), r.Errno)
	p.line("  %-6s %s: %s", "why", r.Layer, oneLine(r.Why))
	if r.At != "" {
		p.line("  %-6s %s", "rule", oneLine(r.At))
	}
	p.line("  %-6s %s", "by", oneLine(strings.Join(r.Programs, ", ")))
	if r.Allow != nil {
		p.line("  %-6s %s", "allow", oneLine(r.Allow.String()))
	}
}

func (p *page) alsoOutside(host []advice.Refusal) {
	if len(host) == 0 {
		return
	}
	p.head("refused outside of jail as well")
	for _, r := range host {
		p.line("%dx %s %s  (%s; outside: %s)", r.Count, r.Op, p.path(cmp.Or(r.Path, r.To)), r.Errno, cmp.Or(r.Outside, "the same"))
	}
}
