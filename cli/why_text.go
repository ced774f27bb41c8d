package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"jail/advice"
)

// text is the answer for people: what was refused, what the host refuses as well,
// and the rules that would allow the rest, as they stand in a rule file.
func (w whyAnswer) text(home string) string {
	p := &page{home: home}
	var host, ours []advice.Refusal
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
		ours = append(ours, r)
		if r.Allow != nil {
			rules = append(rules, *r.Allow)
		}
	}
	for _, alike := range grouped(ours) {
		p.refusals(alike)
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

// grouped puts together what differs in nothing but a file's name: temporary files
// with random names would be a page of their own.
func grouped(list []advice.Refusal) (out [][]advice.Refusal) {
	at := map[string]int{}
	for _, r := range list {
		key := fmt.Sprint(filepath.Dir(r.Path), r.To, r.Op, r.Want, r.Errno, r.Layer, r.At, r.Why, r.Allow, r.Secret, r.Programs)
		i, known := at[key]
		if !known || r.Path == "" {
			at[key], out = len(out), append(out, nil)
			i = len(out) - 1
		}
		out[i] = append(out[i], r)
	}
	return out
}

func (p *page) refusals(alike []advice.Refusal) {
	r, count := alike[0], 0
	for _, one := range alike {
		count += one.Count
	}
	what := r.Op
	if r.Want != "" && r.Want != r.Op {
		what += " to " + r.Want
	}
	if on := cmp.Or(r.Path, r.To); on != "" {
		what += " " + p.path(on)
	}
	if others := len(alike) - 1; others > 0 {
		what += fmt.Sprintf(" and %d more in %s", others, strings.TrimSuffix(p.path(filepath.Dir(r.Path)+"/"), "/"))
	}
	fmt.Fprintf(p, "%dx %s  (%s)\n", count, what, r.Errno)
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
