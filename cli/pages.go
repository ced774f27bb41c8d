package cli

import (
	"regexp"
	"slices"
	"strings"

	"jail/rules"
)

// A usage text is the one definition of a command for people: help prints it, and
// shell completions and the man page are made of it. So its form is fixed: the
// synopsis is the first line; a paragraph follows; a line of a flag or command
// begins with two blanks, and what it says, with two blanks before, may go on in
// lines that are indented further; "[flags]" in the synopsis are jail's own. A test
// holds that the flags which a command takes are those that its text has.

// flagText is a flag as a usage text has it.
type flagText struct {
	name  string // with its dashes
	value string // a word for what follows; "" if nothing does
	text  string
}

// entryLine is "  --flag VALUE   what it does" or "  command   what it does".
var entryLine = regexp.MustCompile(`^  (\S+)(?: ([A-Z]+))?(?:  ?\s*(\S.*))?$`)

// entries reads the flags and commands of a usage text, in its order.
func entries(usage string) (out []flagText) {
	open := false // the line before belongs to an entry
	body, _, _ := strings.Cut(usage, "\nExamples:\n")
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\n")
		switch m := entryLine.FindStringSubmatch(line); {
		case m != nil && !strings.HasPrefix(line, "   "):
			out, open = append(out, flagText{m[1], m[2], m[3]}), true
		case open && strings.HasPrefix(line, "     "):
			last := &out[len(out)-1]
			last.text = strings.TrimSpace(last.text + " " + strings.TrimSpace(line))
		default:
			open = false
		}
	}
	return out
}

// synopsis is the first line of a usage text.
func synopsis(usage string) string {
	line, _, _ := strings.Cut(usage, "\n")
	return line
}

// forms are all lines of a synopsis: a command may be written in several ways.
func forms(usage string) string {
	lines, _, _ := strings.Cut(usage, "\n\n")
	return lines
}

// flags are those that a command takes, "" being the run of a program.
func (a app) flags(name string) (out []flagText) {
	usage := a.usage(name)
	if name != "" && usage == usageMain {
		return nil // help and version have no text of their own, and no flags
	}
	for _, e := range entries(usage) {
		if strings.HasPrefix(e.name, "-") {
			out = append(out, e)
		}
	}
	if name == "" || !strings.Contains(forms(usage), "[flags]") {
		return out
	}
	for _, e := range a.flags("") {
		own := slices.ContainsFunc(out, func(have flagText) bool { return have.name == e.name })
		if !own && !slices.Contains(runOnly(), e.name) {
			out = append(out, e)
		}
	}
	return out
}

// runOnly are the flags that say how a program is run, not by which rules.
func runOnly() []string {
	return []string{"--guard-json", "--keep-running", "-v", "--version"}
}

// usage is the text of a command.
func (a app) usage(name string) string {
	for _, c := range a.commands() {
		if c.name == name {
			return c.usage
		}
	}
	return usageMain
}

// about is what the list of commands says of one.
func (a app) about(name string) string {
	for _, e := range entries(usageMain) {
		if e.name == name {
			return e.text
		}
	}
	return ""
}

// completes are the words that may follow a flag; ok is false if they are not known
// beforehand.
func completes(f flagText) (words []string, ok bool) {
	switch f.name {
	case "--profile":
		return rules.ProfileNames(), true
	case "--waive":
		return rules.WaiverNames(), true
	}
	return nil, false
}
