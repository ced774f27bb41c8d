package cli

import (
	"fmt"
	"slices"
	"strings"

	"jail/advice"
)

// file is the proposal as a rule file.
func (l *lesson) file(profiles []string, lines []advice.Line, left []advice.Left) string {
	quoted := make([]string, len(profiles))
	for i, p := range profiles {
		quoted[i] = fmt.Sprintf("%q", p)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Proposed for: %s\n# Read it before it is trusted: it allows what one run has done.\n", oneLine(strings.Join(l.argv, " ")))
	fmt.Fprintf(&b, "version  = 1\nprofiles = [%s]\n", strings.Join(quoted, ", "))
	if len(lines) > 0 {
		b.WriteString("\n[files]\n")
	}
	writeLists(&b, "", lines)
	if more := l.learner.ForArtifacts(lines); len(more) > 0 {
		b.WriteString("\n[artifact]\n")
		writeLists(&b, "", more)
	}
	l.remarks(&b, left)
	return b.String()
}

// merged is what to add to a rule file, as a difference.
func (l *lesson) merged(lines []advice.Line, left []advice.Left) string {
	var b strings.Builder
	if len(lines) == 0 {
		fmt.Fprintf(&b, "# %s allows all that was used\n", oneLine(l.o.rulesFile))
	} else {
		fmt.Fprintf(&b, "--- %s\n+++ with what %s used\n [files]\n", oneLine(l.o.rulesFile), oneLine(l.argv[0]))
	}
	writeLists(&b, "+", lines)
	if more := l.learner.ForArtifacts(lines); len(more) > 0 {
		b.WriteString(" [artifact]\n")
		writeLists(&b, "+", more)
	}
	l.remarks(&b, left)
	return b.String()
}

// writeLists writes one list for each key, one element on a line, with who needed it.
func writeLists(b *strings.Builder, mark string, lines []advice.Line) {
	for i, x := range lines {
		if i == 0 || lines[i-1].Key != x.Key {
			fmt.Fprintf(b, "%s%s = [\n", mark, x.Key)
		}
		fmt.Fprintf(b, "%s  %s, # %s\n", mark, x.Value, few(x.By))
		if i == len(lines)-1 || lines[i+1].Key != x.Key {
			fmt.Fprintf(b, "%s]\n", mark)
		}
	}
}

// mostRemarks keeps the file short.
const mostRemarks = 5

// remarks are what is left to the reader: what is not proposed, and contacts.
func (l *lesson) remarks(b *strings.Builder, left []advice.Left) {
	if len(left) > 0 {
		b.WriteString("\n# Used, but not proposed:\n")
	}
	for i, x := range left {
		if i == mostRemarks {
			fmt.Fprintf(b, "# and %d more\n", len(left)-i)
			break
		}
		fmt.Fprintf(b, "# %s: %s (%s)\n", oneLine(tilde(x.Path, l.places.Home)), x.Why, few(x.By))
	}
	if to := l.learner.Contacts(); len(to) > 0 {
		fmt.Fprintf(b, "\n# Connected to, or tried: %s\n", few(to))
	}
}

func few(names []string) string {
	names = slices.Sorted(slices.Values(names))
	if len(names) > 4 {
		names = append(names[:4], "...")
	}
	return oneLine(strings.Join(names, ", "))
}
