package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"jail/plan"
)

// check is `jail check`: print the plan, for people or for machines.
func (a app) check(args []string) int {
	var o options
	argv, err := o.parse("check", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&o.json, "json", false, "")
	})
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(a.stdout, usageCheck)
		return statusOK
	case err != nil:
		return a.fail(&plan.Problem{What: err.Error(), Hint: "`jail check --help` shows the usage"}, statusUsage)
	}
	command := ""
	if len(argv) > 0 {
		command = argv[0]
	}
	p, err := compile(o, command)
	if err != nil {
		return a.fail(err, statusFailed)
	}
	r := newReport(a.version, p, command)
	if o.json {
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(r); err != nil {
			return a.fail(err, statusFailed)
		}
	} else {
		fmt.Fprint(a.stdout, printable(r.text(p.Home)))
	}
	if !r.Enforceable || r.Command != nil && r.Command.Error != "" {
		return statusFailed
	}
	return statusOK
}

// report is the answer of `jail check --json`. Version changes when a field
// changes its meaning or goes away.
type report struct {
	Version     int             `json:"version"`
	Jail        string          `json:"jail"`
	Enforceable bool            `json:"enforceable"`
	Problem     string          `json:"problem,omitempty"`
	Hint        string          `json:"hint,omitempty"`
	Tree        string          `json:"tree"`
	Profiles    []string        `json:"profiles"`
	Landlock    int             `json:"landlock_abi"`
	Grants      []reportGrant   `json:"grants"`
	CarveOuts   []reportCarve   `json:"carve_outs"`
	Promises    []plan.Promise  `json:"promises"`
	Waivers     []reportRule    `json:"waivers"`
	Environment reportEnv       `json:"environment"`
	Limits      map[string]any  `json:"limits,omitempty"`
	Missing     []reportRule    `json:"missing"`
	Options     []reportOptions `json:"start_options"`
	Notes       []string        `json:"notes"`
	Command     *reportCommand  `json:"command,omitempty"`
}

type reportGrant struct {
	Path   string       `json:"path"`
	Access string       `json:"access"`
	Create bool         `json:"create,omitempty"`
	Rules  []reportRule `json:"rules"`
}

type reportRule struct {
	Text string `json:"text"`
	At   string `json:"at"`
}

type reportCarve struct {
	Kind    string `json:"kind"`
	Path    string `json:"path"`
	At      string `json:"at"`
	State   string `json:"state"`
	Pattern bool   `json:"pattern,omitempty"`
}

type reportEnv struct {
	Passed  []string `json:"passed"`  // names only: values may be secret
	Dropped []string `json:"dropped"` // likewise
	Private []string `json:"private"` // point into the private TMPDIR
}

type reportOptions struct {
	Profile string   `json:"profile"`
	Options []string `json:"options"`
	Why     string   `json:"why"`
}

type reportCommand struct {
	Name  string   `json:"name"`
	Path  string   `json:"path,omitempty"`
	Error string   `json:"error,omitempty"`
	Hint  string   `json:"hint,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

func newReport(version string, p plan.Plan, command string) report {
	r := report{
		Version: 1, Jail: version, Enforceable: true, Tree: p.Tree.Root, Profiles: p.Profiles, Landlock: p.ABI,
		Promises: p.Promises, Notes: append([]string{}, p.Tree.Notes...),
		Grants: []reportGrant{}, CarveOuts: []reportCarve{}, Waivers: []reportRule{}, Missing: []reportRule{},
		Options: []reportOptions{}, Environment: reportEnv{Passed: []string{}, Dropped: append([]string{}, p.Dropped...)},
	}
	var problem *plan.Problem
	if errors.As(p.Enforceable(), &problem) {
		r.Enforceable, r.Problem, r.Hint = false, problem.What, problem.Hint
	}
	for g := range p.Grants() {
		rg := reportGrant{Path: g.Path, Access: g.Access.String(), Create: g.Create}
		for _, u := range g.From {
			rg.Rules = append(rg.Rules, reportRule{Text: u.Text, At: u.At.String()})
		}
		r.Grants = append(r.Grants, rg)
	}
	for _, c := range p.Carves {
		r.CarveOuts = append(r.CarveOuts, reportCarve{Kind: c.Word(), Path: c.Path, At: c.At.String(), State: carveState(p, c), Pattern: c.Glob})
	}
	for _, w := range p.Waivers {
		r.Waivers = append(r.Waivers, reportRule{Text: w.Name, At: w.From.String()})
	}
	for _, m := range p.Missing {
		r.Missing = append(r.Missing, reportRule{Text: m.Text, At: m.At.String()})
	}
	for _, o := range p.Options {
		r.Options = append(r.Options, reportOptions(o))
	}
	for _, kv := range p.Env {
		name, _, _ := strings.Cut(kv, "=")
		r.Environment.Passed = append(r.Environment.Passed, name)
	}
	slices.Sort(r.Environment.Passed)
	r.Environment.Private = []string{"TMPDIR"}
	for _, c := range p.Private {
		r.Environment.Private = append(r.Environment.Private, c.Variable)
	}
	for _, l := range p.Limits {
		if r.Limits == nil {
			r.Limits = map[string]any{}
		}
		r.Limits[l.Name] = l.Value
	}
	if command != "" {
		r.Command = findCommand(p, command)
	}
	return r
}

func carveState(p plan.Plan, c plan.Carve) string {
	switch {
	case c.Absent:
		return "absent: reported, not enforced"
	case !c.Open():
		return "held: no grant reaches it"
	case p.Mounts:
		return "held by mounts"
	}
	return "not held"
}

func findCommand(p plan.Plan, name string) *reportCommand {
	cmd, err := p.Find(name)
	rc := &reportCommand{Name: name, Path: cmd.Path, Notes: cmd.Notes}
	var problem *plan.Problem
	if errors.As(err, &problem) {
		rc.Error, rc.Hint = problem.What, problem.Hint
	}
	return rc
}
