package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"jail/attack"
	"jail/launch"
	"jail/plan"
	"jail/rules"
)

// TrialName is the name under which jail starts itself to make one attack in a
// jail. Whoever uses it by hand gets a jail.
const TrialName = "jail: trial"

// A trial is the user's own plan, moved to a scratch project: the same rule files,
// flags, profiles and host.
type trial struct {
	Options trialOptions
	Command string // chooses an agent's profile
	Attack  attack.Attack
	World   attack.World
	Carves  bool // the plan has the mounts layer, which holds carve-outs
}

// Trial makes the attack that args[0] describes and returns the exit status.
func Trial(args []string) int {
	a := app{stdout: os.Stdout, stderr: os.Stderr}
	var order struct {
		Trial trial
		Words []string
	}
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &order) != nil || len(order.Words) == 0 {
		return a.fail(&plan.Problem{What: "this is how jail calls itself; it can't be called by hand", Hint: "jail doctor --attack"}, statusJail)
	}
	p, err := order.Trial.compile()
	if err != nil {
		return a.fail(err, statusJail)
	}
	if err := os.Chdir(p.Cwd); err != nil {
		return a.fail(err, statusJail)
	}
	status, err := launch.Run(p, order.Words[0], order.Words, launch.Options{})
	if err != nil {
		return a.fail(err, statusJail)
	}
	return status
}

// trialOptions are those of [options] that choose rules, in a form that travels.
type trialOptions struct {
	RulesFile string
	Flags     rules.Flags
}

func (o trialOptions) plain() options { return options{rulesFile: o.RulesFile, flags: o.Flags} }

// words are the arguments of a process that makes the attack.
func (t trial) words(attacker []string) []string {
	text, err := json.Marshal(map[string]any{"Trial": t, "Words": attacker})
	if err != nil {
		panic(err) // strings, numbers and lists of them
	}
	return []string{TrialName, string(text)}
}

// compile makes the user's plan, for the scratch project.
func (t trial) compile() (plan.Plan, error) {
	h, err := host()
	if err != nil {
		return plan.Plan{}, err
	}
	in, err := input(t.Options.plain(), t.Command, h)
	if err != nil {
		return plan.Plan{}, err
	}
	for _, list := range []*[]string{&in.Flags.Read, &in.Flags.Write, &in.Flags.Exec, &in.Flags.Protect, &in.Flags.Hide} {
		for i, path := range *list {
			(*list)[i] = absolute(h.Cwd, path)
		}
	}
	own, err := rules.Parse(in)
	if err != nil {
		return plan.Plan{}, err
	}
	_, allows := own.Allow()
	text := t.World.Rules(t.Attack, allows, t.Carves)
	if _, off := own.UpgradesOff(); allows && !off {
		text += "[artifact]\nrun = \"seal\"\n" // as the user's own list has it
	}
	in.Sources = append(in.Sources, rules.Source{Kind: rules.RulesFile, Name: "jail doctor --attack", Text: []byte(text)})
	pol, err := rules.Parse(in)
	if err != nil {
		return plan.Plan{}, err
	}
	return plan.Compile(pol, t.scratch(h))
}

// scratch moves the project, and what jail keeps, out of the user's own.
func (t trial) scratch(h plan.Host) plan.Host {
	state := filepath.Join(filepath.Dir(t.World.State), "jail")
	h.Cwd, h.Temp, h.State = t.World.Project, t.World.Temp, state
	h.Own = append(h.Own, state)
	h.Tree = plan.FindTree(h.Cwd, h.UID)
	probe(&h)
	return h
}

// absolute is a path of a flag with the directory that it starts at.
func absolute(dir, path string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, "~") || strings.HasPrefix(path, "$") {
		return path
	}
	return literal(dir) + "/" + path
}
