package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jail/plan"
)

// A requirement is one word of `jail check --require`: what must be so, or the
// check fails.
type requirement struct {
	text  string
	unmet func(p plan.Plan) (why string) // "" if it is met
}

// reportRequirement is a requirement and whether it is met.
type reportRequirement struct {
	Text string `json:"text"`
	Met  bool   `json:"met"`
	Why  string `json:"why,omitempty"`
}

// parseRequire reads "abi>=6,mounts,seal,digests".
func parseRequire(list string) ([]requirement, error) {
	var out []requirement
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		unmet, err := parseRequirement(text)
		if err != nil {
			return nil, err
		}
		out = append(out, requirement{text, unmet})
	}
	return out, nil
}

// requirementNames are those without a number.
func requirementNames() map[string]func(plan.Plan) string {
	return map[string]func(plan.Plan) string{
		"mounts":     withoutLayer,
		"seal":       withoutSeal,
		"digests":    withoutDigests,
		"no-waivers": withWaivers,
	}
}

func parseRequirement(text string) (func(plan.Plan) string, error) {
	if number, ok := strings.CutPrefix(text, "abi>="); ok {
		abi, err := strconv.ParseUint(number, 10, 8)
		if err != nil || abi == 0 {
			return nil, fmt.Errorf("%q: a number is expected, abi>=6 for one", text)
		}
		return func(p plan.Plan) string {
			if p.ABI >= int(abi) {
				return ""
			}
			return fmt.Sprintf("Landlock's ABI is %d here", p.ABI)
		}, nil
	}
	if unmet, ok := requirementNames()[text]; ok {
		return unmet, nil
	}
	return nil, fmt.Errorf("%q is not known: abi>=N, mounts, seal, digests, no-waivers are", text)
}

func withoutLayer(p plan.Plan) string {
	if p.Mounts {
		return ""
	}
	for _, w := range p.Waivers {
		if w.Name == "mounts" {
			return fmt.Sprintf("the layer is waived (%s)", w.From)
		}
	}
	return "private namespaces can't be made here; `jail doctor` tells why"
}

func withoutSeal(p plan.Plan) string {
	switch {
	case p.Seals():
		return ""
	case !p.Mounts:
		return "without mounts nothing is sealed"
	}
	return fmt.Sprintf("what the jail writes never executes (%s)", p.Artifacts.Run.From)
}

// withoutDigests wants that nothing executes but commands whose digests were
// compared.
func withoutDigests(p plan.Plan) string {
	if len(p.Allowed) == 0 {
		return "there is no [commands] allow: all that exec grants reach is executed"
	}
	names := each(p.Unpinned(), func(a plan.Allowed) string { return a.Text })
	if len(names) == 0 {
		return ""
	}
	return "no digest is written down for " + strings.Join(slices.Compact(names), ", ") + "; `jail lock` does it"
}

func withWaivers(p plan.Plan) string {
	for _, pr := range p.Promises {
		if pr.Waived {
			return fmt.Sprintf("%q is waived (%s)", pr.ID, pr.From)
		}
	}
	return ""
}

// requirementsOf asks each.
func requirementsOf(p plan.Plan, all []requirement) []reportRequirement {
	return each(all, func(r requirement) reportRequirement {
		why := r.unmet(p)
		return reportRequirement{Text: r.text, Met: why == "", Why: why}
	})
}
