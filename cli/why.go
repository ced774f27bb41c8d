package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"jail/advice"
	"jail/launch"
	"jail/plan"
	"jail/rules"
	"jail/trace"
)

// why is `jail why`: run a command and explain what was refused, or explain one
// path.
func (a app) why(args []string) int {
	var o options
	rest, err := o.parse("why", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&o.json, "json", false, "")
	})
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(a.stdout, usageWhy)
		return statusOK
	case err != nil:
		return a.misused("why", err)
	case len(rest) == 0:
		return a.misused("why", errors.New("neither a path nor a command is given"))
	case !afterDashes(args, rest) && len(rest) > 1:
		return a.misused("why", fmt.Errorf("%q is not expected here; a command stands after --", rest[1]))
	case !afterDashes(args, rest):
		if err := a.whyPath(o, rest[0]); err != nil {
			return a.fail(err, statusFailed)
		}
		return statusOK
	}
	status, err := a.whyCommand(o, rest)
	if err != nil {
		return a.fail(err, statusJail)
	}
	return status
}

// afterDashes tells whether the words that are no flags follow "--".
func afterDashes(args, rest []string) bool {
	i := len(args) - len(rest) - 1
	return i >= 0 && args[i] == "--"
}

// whyAnswer is the answer of `jail why --json -- COMMAND`.
type whyAnswer struct {
	Version  int              `json:"version"`
	Command  []string         `json:"command"`
	Status   int              `json:"status"`
	Refusals []advice.Refusal `json:"refusals"`
}

func (a app) whyCommand(o options, argv []string) (status int, err error) {
	w := watcher{}
	status, err = a.watched(o, argv, &w)
	if err != nil {
		return 0, err
	}
	answer := whyAnswer{Version: 1, Command: argv, Status: status, Refusals: w.refusals()}
	if err := a.answer(o, answer, w.places.Home); err != nil {
		fmt.Fprintf(a.stderr, "jail: warning: the answer can't be printed: %v\n", plan.Cause(err))
		status = max(status, statusFailed)
	}
	return status, nil
}

func (a app) answer(o options, w whyAnswer, home string) (err error) {
	if o.json {
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(w)
	}
	_, err = fmt.Fprint(a.stdout, printable(w.text(home)))
	return err
}

// watcher makes the explainer when the first call comes, since only then it is
// known how the jail sees the file system.
type watcher struct {
	places   advice.Places
	mu       sync.Mutex
	explains *advice.Explainer
}

func (w *watcher) see(inside plan.Plan, c trace.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.explains == nil {
		w.explains = advice.NewExplainer(inside, w.places)
	}
	w.explains.See(c)
}

func (w *watcher) refusals() []advice.Refusal {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.explains == nil {
		return []advice.Refusal{}
	}
	return w.explains.List()
}

// watched runs a command under its rules, traced. What it prints goes to standard
// error, so that the answer has standard output for itself.
func (a app) watched(o options, argv []string, w *watcher) (status int, err error) {
	p, err := compile(o, argv[0], probe)
	if err != nil {
		return 0, err
	}
	if err := p.Enforceable(); err != nil {
		return 0, err
	}
	cmd, err := p.Find(argv[0])
	if err != nil {
		return 0, err
	}
	w.places = placesOf(p.Home, p.Tree.Root)
	return launch.Watch(p, cmd.Path, argv, launch.Watcher{See: w.see, Stdout: os.Stderr})
}

// placesOf knows the secrets of the default profile, whichever profiles are in use.
func placesOf(home, root string) advice.Places {
	pl := advice.Places{Home: home, Root: root, Secrets: []string{configDir(home), stateDir(home)}}
	pol, err := rules.Parse(rules.Input{Flags: rules.Flags{Profiles: []string{"default"}}})
	if err != nil {
		return pl // the profile is built in, and a test reads it
	}
	for c := range pol.Carves() {
		if path, ok := c.Path.Expand(home, os.Getenv); ok && c.Hide && filepath.IsAbs(path) {
			pl.Secrets = append(pl.Secrets, filepath.Clean(path))
		}
	}
	return pl
}

const usageWhy = `jail why [flags] [--json] -- COMMAND [ARG...]
jail why [flags] [--json] PATH

Run COMMAND under its rules, watch its system calls, and tell at the end each
distinct refusal, the most frequent first: what was tried, on what, which layer
refused, which rule or the absence of one, and the line for a rule file that
would allow it. What is refused outside of jail as well is listed apart; secrets
are named and never proposed. Or: what may be done at PATH, and which line
decides. Takes jail's own flags.

COMMAND prints to standard error; the answer goes to standard output. Watching
makes every call slower, and a debugger inside fails: COMMAND is traced already.

  --json    the same for machines

Exit status: that of COMMAND, as without "why"; for PATH 0, or 1 if the rules are
wrong; 2 usage.

Examples:
  jail why -- npm test
  jail why --json -- make | jq '.refusals[].allow'
  jail why ~/.cache/tool
`
