package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"jail/plan"
)

// Exit statuses, after env(1). A command's own status is passed on untouched.
const (
	statusOK     = 0
	statusFailed = 1   // of jail's other commands
	statusUsage  = 2   // of jail's other commands
	statusJail   = 125 // running a command: jail itself failed

	statusNotFound = 127
)

// app is one invocation.
type app struct {
	version string
	stdout  io.Writer
	stderr  io.Writer
}

// Main runs jail and returns its exit status; if a command is started, it does
// not return.
func Main(version string, args []string, stdout, stderr io.Writer) int {
	out := &output{Writer: stdout}
	a := app{version: version, stdout: out, stderr: stderr}
	status := a.dispatch(args)
	if out.err != nil && status == statusOK {
		return a.fail(&plan.Problem{What: fmt.Sprintf("the answer can't be written: %v", plan.Cause(out.err)), Hint: "what is there of it is not whole"}, statusFailed)
	}
	return status
}

func (a app) dispatch(args []string) int {
	if len(args) > 0 {
		for _, c := range a.commands() {
			if c.name == args[0] {
				return c.run(args[1:])
			}
		}
	}
	return a.run(args)
}

// output remembers that an answer was cut short (a full disk): half a schema or
// manual page must not pass for a whole one.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil {
		o.err = err
	}
	return n, err
}

// command is one of jail's own. What its usage text says is all that people are
// told of it (see pages.go).
type command struct {
	name  string
	run   func(args []string) int
	usage string
}

// commands are recognised only as the very first word: `jail -- check` runs a
// program called check.
func (a app) commands() []command {
	return []command{
		{"check", a.check, usageCheck},
		{"why", a.why, usageWhy},
		{"learn", a.learn, usageLearn},
		{"init", a.init, usageInit},
		{"trust", a.trust, usageTrust},
		{"lock", a.lock, usageLock},
		{"doctor", a.doctor, usageDoctor},
		{"log", a.log, usageLog},
		{"gc", a.gc, usageGC},
		{"schema", a.schema, usageSchema},
		{"completion", a.completion, usageCompletion},
		{"man", a.man, usageMan},
		{"help", a.help, usageMain},
		{"version", a.printVersion, usageMain},
	}
}

// fail prints an error and its remedy, each on a line of its own, and returns
// the status that goes with it.
func (a app) fail(err error, status int) int {
	fmt.Fprintf(a.stderr, "jail: error: %s\n", printable(err.Error()))
	var p *plan.Problem
	if !errors.As(err, &p) {
		p = &plan.Problem{}
	}
	hint := p.Hint
	switch {
	case hint == "" && p.At.Line > 0:
		hint = "mend that line; the README lists what a rule file may say"
	case hint == "":
		hint = "`jail check` shows the rules, `jail doctor` this machine, `jail help` the usage"
	}
	fmt.Fprintf(a.stderr, "jail: hint: %s\n", printable(hint))
	if p.Status != 0 && status == statusJail {
		return p.Status
	}
	return status
}

// oneLine is for names that are printed bare: a file name may hold line ends.
func oneLine(s string) string {
	return printable(strings.ReplaceAll(s, "\n", string(unicode.ReplacementChar)))
}

// printable keeps what would act on a terminal, or make text look different from
// what it is (bidirectional overrides, zero-width characters), out of what is
// printed of file names and rule files.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
