package cli

import (
	"errors"
	"flag"
	"fmt"
	"runtime/debug"
	"slices"

	"jail/launch"
	"jail/plan"
)

// run is `jail [flags] [--] COMMAND [ARG...]`.
func (a app) run(args []string) int {
	var o options
	var version bool
	argv, err := o.parse("jail", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&o.verbose, "v", false, "")
		fs.BoolVar(&version, "version", false, "")
	})
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(a.stdout, usageMain)
		return statusOK
	case err != nil:
		return a.fail(&plan.Problem{What: err.Error(), Hint: "`jail help` lists the flags; a command's own flags come after its name"}, statusJail)
	case version:
		return a.printVersion(nil)
	case len(argv) == 0:
		return a.fail(&plan.Problem{What: "no command is given", Hint: "jail [flags] [--] COMMAND [ARG...], for example: jail -- opencode"}, statusJail)
	}
	return a.fail(a.start(o, argv), statusJail)
}

// start compiles the plan and becomes the command. It returns only on error.
func (a app) start(o options, argv []string) error {
	// A start is over before collecting garbage pays; the limit is for the look
	// through very large trees.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
	p, err := compile(o, argv[0])
	if err != nil {
		return err
	}
	if err := p.Enforceable(); err != nil {
		return err
	}
	cmd, err := p.Find(argv[0])
	if err != nil {
		return err
	}
	for _, n := range slices.Concat(p.Tree.Notes, cmd.Notes) {
		fmt.Fprintf(a.stderr, "jail: note: %s\n", oneLine(n))
	}
	if o.verbose {
		a.summary(p, cmd.Path)
	}
	return launch.Run(p, cmd.Path, argv)
}

// summary is what -v tells before the command starts.
func (a app) summary(p plan.Plan, path string) {
	fmt.Fprintf(a.stderr, "jail: %s in %s, profiles %v, Landlock ABI %d\n", oneLine(path), oneLine(p.Tree.Root), p.Profiles, p.ABI)
	for _, pr := range p.Promises {
		if pr.Waived {
			fmt.Fprintf(a.stderr, "jail: waived (%s): %s\n", pr.From, oneLine(pr.Text))
		}
	}
	if len(p.Dropped) > 0 {
		fmt.Fprintf(a.stderr, "jail: not passed on: %v\n", p.Dropped)
	}
}
