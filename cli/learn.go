package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"jail/advice"
	"jail/launch"
	"jail/plan"
	"jail/rules"
	"jail/trace"
)

// learn is `jail learn`: watch a command that may do nearly everything, and propose
// the rules that it needs.
func (a app) learn(args []string) int {
	var o options
	var unused bool
	argv, err := o.parse("learn", args, func(fs *flag.FlagSet) {
		fs.Func("merge", "", once(&o.rulesFile))
		fs.BoolVar(&unused, "unused", false, "")
	})
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(a.stdout, usageLearn)
		return statusOK
	case err == nil && !unused && len(argv) == 0:
		err = errors.New("no command is given")
	case err == nil && unused && len(argv) > 0:
		err = fmt.Errorf("%q is not expected here", argv[0])
	}
	if err != nil {
		return a.misused("learn", err)
	}
	if unused {
		err = a.tellUnused(o)
	} else {
		err = a.learnFrom(o, argv)
	}
	if err != nil {
		return a.fail(err, statusFailed)
	}
	return statusOK
}

// lesson is a run that is learned from.
type lesson struct {
	o       options
	argv    []string
	places  advice.Places
	base    plan.Plan // what the rules so far amount to
	learner *advice.Learner
	mu      sync.Mutex
	status  int
}

func (l *lesson) see(_ plan.Plan, c trace.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.learner.See(c)
}

// built tells whether a program would be sealed under the rules: what the jail may
// write. It is asked by the tracer's thread, as see is.
func (l *lesson) built(path string) bool {
	return l.base.Seals() && l.base.Reason(path, plan.Exec).Decision == plan.Writable
}

// learnFrom watches the command and prints the proposal.
func (a app) learnFrom(o options, argv []string) error {
	l := &lesson{o: o, argv: argv}
	if err := a.watchLesson(l); err != nil {
		return err
	}
	if l.status != 0 {
		fmt.Fprintf(a.stderr, "jail: warning: the command ended with status %d: what it would have done after that is not known\n", l.status)
	}
	if err := remember(l.base, l.learner.Used); err != nil {
		fmt.Fprintf(a.stderr, "jail: note: what was used can't be recorded for --unused: %v\n", plan.Cause(err))
	}
	profiles, p, err := l.profiles()
	if err != nil {
		return err
	}
	lines, left := l.learner.Propose(p)
	text := l.file(profiles, lines, left)
	if o.rulesFile != "" {
		text = l.merged(lines, left)
	}
	fmt.Fprint(a.stdout, printable(text))
	return l.check(profiles, lines)
}

// watchLesson runs the command permissively. It prints to standard error: the
// proposal has standard output.
func (a app) watchLesson(l *lesson) (err error) {
	if l.base, err = compileFor(l.o, l.argv[0]); err != nil {
		return err
	}
	if err := l.base.Enforceable(); err != nil {
		return err
	}
	cmd, err := l.base.Find(l.argv[0])
	if err != nil {
		return err
	}
	own := []string{configDir(l.base.Home), stateDir(l.base.Home)}
	for _, dir := range own { // what is absent can't be protected
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making %q, which is kept from the command: %w", dir, plan.Cause(err))
		}
	}
	l.places = placesOf(l.base.Home, l.base.Tree.Root)
	l.learner = advice.NewLearner(l.base, l.places)
	fmt.Fprintln(a.stderr, "jail: note: learning: the command may read, write and execute nearly everything of yours; only what is hidden or protected, and what seccomp refuses, stays closed")
	l.status, err = launch.Watch(l.base.Permissive(own), cmd.Path, l.argv, launch.Watcher{See: l.see, Built: l.built, Stdout: os.Stderr})
	return err
}

// compileFor makes the plan to start from: that of --merge FILE, or of profiles
// alone. A rule file that was not asked for is not what is being proposed.
func compileFor(o options, command string) (plan.Plan, error) {
	if o.rulesFile != "" {
		return compile(o, command, probe)
	}
	return compileSources(o, command, nil)
}

// compileSources makes a plan of these rule files and no others.
func compileSources(o options, command string, sources []rules.Source) (plan.Plan, error) {
	h, err := host()
	if err != nil {
		return plan.Plan{}, err
	}
	pol, err := rules.Parse(rules.Input{
		Sources: sources, Flags: o.flags, Command: filepath.Base(command), Markers: markers(h.Tree.Root),
	})
	if err != nil {
		return plan.Plan{}, err
	}
	probe(&h)
	return plan.Compile(pol, h)
}

// profiles adds to those that the project and the command choose the ones of other
// toolchains, as long as one covers something that is needed.
func (l *lesson) profiles() ([]string, plan.Plan, error) {
	// Made anew: what the command has made is there now, and a plan grants that.
	best, err := compileFor(l.o, l.argv[0])
	if err != nil {
		return nil, plan.Plan{}, err
	}
	chosen := best.Profiles
	for l.o.rulesFile == "" {
		missing, name := len(l.learner.Missing(best)), ""
		for _, candidate := range rules.ChosenBy(rules.Markers()) {
			if slices.Contains(chosen, candidate) || missing == 0 {
				continue
			}
			o := l.o
			o.flags.Profiles = slices.Concat(o.flags.Profiles, chosen, []string{candidate})
			p, err := compileSources(o, l.argv[0], nil)
			if err != nil {
				continue // with what lies on this machine it is no rule file
			}
			if n := len(l.learner.Missing(p)); n < missing {
				missing, name, best = n, candidate, p
			}
		}
		if name == "" {
			break
		}
		chosen = append(slices.Clone(chosen), name)
	}
	return chosen, best, nil
}

// check compiles the proposal, and asks whether all that was used is allowed by it.
func (l *lesson) check(profiles []string, lines []advice.Line) error {
	if l.o.rulesFile != "" {
		return nil
	}
	text := l.file(profiles, lines, nil)
	p, err := compileSources(l.o, l.argv[0], []rules.Source{{Kind: rules.RulesFile, Name: "the proposal", Text: []byte(text)}})
	if err != nil {
		return err
	}
	if again, _ := l.learner.Propose(p); len(again) > 0 {
		return &plan.Problem{
			What: fmt.Sprintf("the proposal does not allow %s", strings.Join(l.learner.Missing(p), ", ")),
			Hint: "`jail why` with the proposal tells more",
		}
	}
	return nil
}

const usageLearn = `jail learn [flags] [--merge FILE] -- COMMAND [ARG...]
jail learn --unused [flags]

Run COMMAND once with nearly everything allowed, watch its system calls, and
propose the smallest rule file with which it does the same: built-in profiles
first, then the directories of programs instead of many files. Never proposed:
HOME, /, secrets, and directories that hold secrets. The line says who needed it.

Run only what you would run without jail: while it learns, COMMAND is kept from
secrets that exist, from carve-outs, from sockets of the host, and from jail's
own files, but from nothing else. COMMAND prints to standard error; the proposal
goes to standard output.

  --merge FILE  show what to add to this rule file instead
  --unused      list the rules in force that no recorded run has used

Exit status: 0; 1 if there is no proposal, or it would not allow all that was
used; 2 usage.

Examples:
  jail learn -- npm test > jail.toml && jail trust
  jail learn --merge jail.toml -- make
  jail learn --unused
`
