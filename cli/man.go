package cli

import (
	"fmt"
	"strings"
)

// man is `jail man`: the usage texts as a manual page.
func (a app) man(args []string) int {
	if status, ok := a.parseOnly("man", args, usageMan); !ok {
		return status
	}
	fmt.Fprint(a.stdout, a.manual())
	return statusOK
}

const usageMan = `jail man

Print the manual page, jail(1).

Exit status: 0; 2 usage.

Examples:
  jail man | man -l -
  jail man > ~/.local/share/man/man1/jail.1
`

// manual is jail(1). It has no date and no version, so that the file in packaging
// changes only with what it says.
func (a app) manual() string {
	var b strings.Builder
	b.WriteString(".TH JAIL 1\n.SH NAME\njail \\- run a command under kernel\\-enforced rules that all its children inherit\n.SH SYNOPSIS\n.nf\n")
	for _, c := range a.pages() {
		b.WriteString(roff(forms(c.usage)) + "\n")
	}
	b.WriteString(".fi\n.SH DESCRIPTION\n" + manBody(usageMain))
	b.WriteString(".SH COMMANDS\n")
	for _, c := range a.pages()[1:] {
		fmt.Fprintf(&b, ".SS %s\n%s", roff(synopsis(c.usage)), manBody(c.usage))
	}
	b.WriteString(".SH FILES\n")
	for _, f := range [][2]string{
		{"jail.toml", "the project's rules; \\fBjail trust\\fR lets them count"},
		{"jail.lock", "beside a rule file: what its commands were"},
		{"~/.config/jail/jail.toml", "your own rules"},
		{"~/.config/jail/trust.toml", "which rule files of projects are trusted"},
		{"~/.local/state/jail", "sealed files and the journals of runs"},
	} {
		fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(f[0]), f[1])
	}
	b.WriteString(".SH SEE ALSO\n.BR landlock (7),\n.BR mount_namespaces (7),\n.BR seccomp (2)\n")
	return b.String()
}

// pages are the commands that have a text of their own, running a program first.
func (a app) pages() []command {
	out := []command{{name: "", usage: usageMain}}
	for _, c := range a.commands() {
		if c.usage != usageMain {
			out = append(out, c)
		}
	}
	return out
}

// manBody writes what follows the synopsis: paragraphs are filled, entries are
// tagged, examples stay as they are.
func manBody(usage string) string {
	var b strings.Builder
	_, body, _ := strings.Cut(usage, "\n\n")
	for paragraph := range strings.SplitSeq(strings.TrimSpace(body), "\n\n") {
		list := entries(paragraph + "\n")
		first, _, _ := strings.Cut(paragraph, "\n")
		switch {
		case strings.HasPrefix(first, "Example"):
			_, rest, _ := strings.Cut(paragraph, "\n")
			fmt.Fprintf(&b, ".PP\n%s\n.PP\n.nf\n.RS\n%s\n.RE\n.fi\n", roff(first), roff(rest))
		case len(list) == 0:
			fmt.Fprintf(&b, ".PP\n%s\n", roff(paragraph))
		default:
			if !strings.HasPrefix(first, "  ") { // a heading
				fmt.Fprintf(&b, ".PP\n%s\n", roff(first))
			}
			for _, e := range list {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(e.name+" "+e.value)), roff(e.text))
			}
		}
	}
	return b.String()
}

// roff keeps text from being read as commands.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`, "'", `\(aq`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return strings.ReplaceAll(text, "\n.", "\n\\&.")
}
