package cli

import (
	"errors"
	"slices"
	"strings"

	"jail/plan"
	"jail/rules"
)

// report is the answer of `jail check --json`. Version changes when a field
// changes its meaning or goes away.
type report struct {
	Version      int                 `json:"version"`
	Jail         string              `json:"jail"`
	Host         reportHost          `json:"host"`
	Digest       string              `json:"digest"`
	Enforceable  bool                `json:"enforceable"`
	Problem      string              `json:"problem,omitempty"`
	Hint         string              `json:"hint,omitempty"`
	Tree         string              `json:"tree"`
	Profiles     []string            `json:"profiles"`
	Landlock     int                 `json:"landlock_abi"`
	Grants       []reportGrant       `json:"grants"`
	CarveOuts    []reportCarve       `json:"carve_outs"`
	Artifacts    reportArtifacts     `json:"artifacts"`
	Reopened     []reportReopen      `json:"reopened"`
	Promises     []plan.Promise      `json:"promises"`
	Layers       []string            `json:"layers"`
	Proof        reportProof         `json:"proof"`
	Network      reportNetwork       `json:"network"`
	Waivers      []reportRule        `json:"waivers"`
	Environment  reportEnv           `json:"environment"`
	Limits       []reportLimit       `json:"limits"`
	Missing      []reportRule        `json:"missing"`
	Options      []reportOptions     `json:"start_options"`
	Notes        []string            `json:"notes"`
	Commands     reportCommands      `json:"commands"`
	Command      *reportCommand      `json:"command,omitempty"`
	Requirements []reportRequirement `json:"requirements"`
}

type reportGrant struct {
	Path   string `json:"path"`
	Access string `json:"access"`
	Create bool   `json:"create,omitempty"`
	// Split: not the whole directory, but so many of its entries.
	Split   bool         `json:"split,omitempty"`
	Entries int          `json:"entries,omitempty"`
	Rules   []reportRule `json:"rules"`
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

type reportReopen struct {
	Path   string `json:"path"`
	Access string `json:"access"`
	In     string `json:"in"` // the carve-out
	At     string `json:"at"`
}

type reportLimit struct {
	Name  string `json:"name"`
	Value uint64 `json:"value"`
}

type reportOptions struct {
	Profile string   `json:"profile"`
	Options []string `json:"options"`
	Why     string   `json:"why"`
}

type reportCommand struct {
	Name  string   `json:"name"`
	Path  string   `json:"path,omitempty"`
	By    string   `json:"by,omitempty"` // the rule that lets it be executed
	Error string   `json:"error,omitempty"`
	Hint  string   `json:"hint,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

func newReport(version string, p plan.Plan, command string) report {
	r := report{
		Version: 1, Jail: version, Enforceable: true, Tree: p.Tree.Root, Profiles: p.Profiles, Landlock: p.ABI,
		Grants: grantsOf(p), CarveOuts: carvesOf(p), Artifacts: artifactsOf(p), Promises: p.Promises, Environment: variablesOf(p),
		Waivers: each(p.Waivers, func(w rules.Waiver) reportRule { return reportRule{w.Name, w.From.String()} }),
		Reopened: each(p.Reopened, func(r plan.Reopened) reportReopen {
			return reportReopen{r.Path, r.Access.String(), r.Carve, r.At.String()}
		}),
		Limits:  each(p.Limits, func(l plan.Limit) reportLimit { return reportLimit{l.Name, l.Value} }),
		Missing: each(p.Missing, func(m plan.Missing) reportRule { return reportRule{m.Text, m.At.String()} }),
		Options: each(p.Options, func(o rules.StartOption) reportOptions { return reportOptions(o) }),
		Notes:   append(append([]string{}, p.Tree.Notes...), p.Remarks...), Commands: commandsOf(p),
		Layers: layersOf(p), Proof: proofOf(p), Network: networkOf(p), Requirements: []reportRequirement{},
	}
	var problem *plan.Problem
	if errors.As(p.Enforceable(), &problem) {
		r.Enforceable, r.Problem, r.Hint = false, problem.What, problem.Hint
	}
	r.Digest = r.digest()
	r.Host = hostOf(p)
	if command != "" {
		r.Command = findCommand(p, command)
	}
	return r
}

// each converts a list. The result is never nil: a script reads [], not null.
func each[A, B any](list []A, convert func(A) B) []B {
	out := make([]B, len(list))
	for i, v := range list {
		out[i] = convert(v)
	}
	return out
}

func grantsOf(p plan.Plan) []reportGrant {
	return each(slices.Collect(p.Grants()), func(g plan.Grant) reportGrant {
		return reportGrant{
			Path: g.Path, Access: g.Access.String(), Create: g.Create, Split: g.Split, Entries: len(g.Entries),
			Rules: each(g.From, func(u plan.Use) reportRule { return reportRule{u.Text, u.At.String()} }),
		}
	})
}

func carvesOf(p plan.Plan) []reportCarve {
	return each(p.Carves, func(c plan.Carve) reportCarve {
		return reportCarve{Kind: c.Word(), Path: c.Path, At: c.At.String(), State: carveState(p, c), Pattern: c.Glob}
	})
}

func carveState(p plan.Plan, c plan.Carve) string {
	switch {
	case c.Absent:
		return "absent: reported, not enforced"
	case !c.Open():
		return "held: no grant reaches it"
	case p.Mounts && c.Copy:
		return "held by mounts: the jail writes a copy"
	case p.Mounts:
		return "held by mounts"
	}
	return "not held"
}

func variablesOf(p plan.Plan) reportEnv {
	passed := each(p.Env, func(kv string) string {
		name, _, _ := strings.Cut(kv, "=")
		return name
	})
	slices.Sort(passed)
	private := each(p.Private, func(c plan.Private) string { return c.Variable })
	return reportEnv{
		Passed: passed, Dropped: append([]string{}, p.Dropped...), Private: append([]string{"TMPDIR"}, private...),
	}
}

func findCommand(p plan.Plan, name string) *reportCommand {
	cmd, err := p.Find(name)
	rc := &reportCommand{Name: name, Path: cmd.Path, Notes: cmd.Notes}
	if err == nil {
		rc.By = p.Deciding(cmd.Path)
	}
	var problem *plan.Problem
	if errors.As(err, &problem) {
		rc.Error, rc.Hint = problem.What, problem.Hint
	}
	return rc
}
