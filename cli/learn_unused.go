package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"jail/plan"
)

// usage is what recorded runs in one project have used: rules, as written.
type usage struct {
	Root string         `json:"root"`
	Runs int            `json:"runs"`
	Used map[string]int `json:"used"`
}

// usageFile lies in jail's own directory, which no write grant may reach.
func usageFile(p plan.Plan) string {
	sum := sha256.Sum256([]byte(p.Tree.Root))
	return filepath.Join(stateDir(p.Home), "used", hex.EncodeToString(sum[:8])+".json")
}

func readUsage(p plan.Plan) (usage, error) {
	u := usage{Root: p.Tree.Root, Used: map[string]int{}}
	text, err := os.ReadFile(usageFile(p))
	if err == nil {
		err = json.Unmarshal(text, &u)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return u, err
}

// remember adds a run.
func remember(p plan.Plan, used map[string]int) error {
	u, err := readUsage(p)
	if err != nil {
		return err
	}
	u.Runs++
	for rule, n := range used {
		u.Used[rule] += n
	}
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	file := usageFile(p)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// tellUnused lists the rules in force that no recorded run has used. Those of a
// profile can't be taken out one by one: of these it is named when none is.
func (a app) tellUnused(o options) error {
	p, err := compile(o, "", probe)
	if err != nil {
		return err
	}
	u, err := readUsage(p)
	if err != nil {
		return &plan.Problem{What: fmt.Sprintf("%q: %v", usageFile(p), plan.Cause(err)), Hint: "remove the file; `jail learn` makes a new one"}
	}
	if u.Runs == 0 {
		return &plan.Problem{What: "no run was recorded in this project", Hint: "`jail learn -- COMMAND` records what it sees"}
	}
	fmt.Fprintf(a.stdout, "recorded runs: %d; rules that none of them used:\n", u.Runs)
	profiles := map[string]bool{} // whether one is of use
	for g := range p.Grants() {
		for _, f := range g.From {
			used := u.Used[f.Text] > 0
			if name, ok := f.At.Profile(); ok {
				profiles[name] = profiles[name] || used
			} else if !used {
				fmt.Fprintf(a.stdout, "  %-6s %-44s %s\n", f.Access, oneLine(f.Text), oneLine(f.At.String()))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		if !profiles[name] {
			fmt.Fprintf(a.stdout, "  all grants of profile %q\n", name)
		}
	}
	return nil
}
