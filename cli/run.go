package cli

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"jail/launch"
	"jail/plan"
	"jail/rules"
)

// run is `jail [flags] [--] COMMAND [ARG...]`.
func (a app) run(args []string) int {
	var o options
	var version, keep bool
	argv, err := o.parse("jail", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&o.verbose, "v", false, "")
		fs.BoolVar(&keep, "keep-running", false, "")
		fs.BoolVar(&version, "version", false, "")
		fs.Func("guard-json", "", once(&o.guardJSON))
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
	status, err := a.start(o, argv, keep)
	if err != nil {
		return a.fail(a.meant(err, args[:len(args)-len(argv)], argv[0]), statusJail)
	}
	return status
}

// meant adds to "command not found" which of jail's own commands the word is or
// is near to, unless "--" has said that it is a program.
func (a app) meant(err error, flags []string, word string) error {
	var p *plan.Problem
	if !errors.As(err, &p) || p.Status != statusNotFound || slices.Contains(flags, "--") {
		return err
	}
	var own []string
	for _, c := range a.commands() {
		own = append(own, c.name)
	}
	hint := p.Hint
	if near := rules.Nearest(word, own); near == word {
		hint = fmt.Sprintf("jail's own commands are the first word, flags follow: jail %s %s", near, strings.Join(flags, " "))
	} else if near != "" && len(word) > 3 { // three letters are near to much
		hint = fmt.Sprintf("%s; did you mean `jail %s`?", hint, near)
	}
	return &plan.Problem{At: p.At, What: p.What, Hint: hint, Status: p.Status}
}

// start compiles the plan and runs the command.
func (a app) start(o options, argv []string, keep bool) (status int, err error) {
	var here plan.Host
	p, err := compile(o, argv[0], func(h *plan.Host) { probe(h); here = *h })
	if err != nil {
		return 0, err
	}
	if err := p.Enforceable(); err != nil {
		return 0, because(err, here.Landlock, here.Seccomp)
	}
	cmd, err := p.Find(argv[0])
	if err != nil {
		return 0, err
	}
	for _, n := range slices.Concat(p.Tree.Notes, cmd.Notes, p.Idle()) {
		fmt.Fprintf(a.stderr, "jail: note: %s\n", oneLine(n))
	}
	if p, err = withGuardFile(p, o.guardJSON); err != nil {
		return 0, err
	}
	if o.verbose {
		a.summary(p, cmd.Path)
	}
	a.rememberRoot(p)
	status, err = launch.Run(p, cmd.Path, argv, launch.Options{Verbose: o.verbose, KeepRunning: keep})
	if err != nil && p.Mounts {
		err = cmp.Or(withoutMounts(o, argv[0]), err)
	}
	return status, err
}

// withGuardFile has the report at exit written for machines too.
func withGuardFile(p plan.Plan, file string) (plan.Plan, error) {
	if file == "" {
		return p, nil
	}
	if !p.Mounts {
		return p, &plan.Problem{
			At: plan.Origin{File: "--guard-json"}, What: "without mounts there is no report: jail becomes the command, and nobody is there at its end",
			Hint: "leave the flag out",
		}
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(p.Cwd, file)
	}
	p.GuardFile = file
	return p, nil
}

// withoutMounts words a failed start when this host refuses what the mounts
// layer needs: what would be lost, and the waiver. Nil if that is not the cause.
func withoutMounts(o options, command string) error {
	var here plan.Host
	p, err := compile(o, command, func(h *plan.Host) { probeAll(h); here = *h })
	if err != nil || p.Mounts {
		return nil
	}
	return because(p.Enforceable(), here.Mounts)
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
		fmt.Fprintf(a.stderr, "jail: not passed on: %s\n", oneLine(strings.Join(p.Dropped, ", ")))
	}
}
