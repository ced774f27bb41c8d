package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
)

// check is `jail check`: print the plan, for people or for machines.
func (a app) check(args []string) int {
	var o options
	var require []requirement
	argv, err := o.parse("check", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&o.json, "json", false, "")
		fs.Func("require", "", func(list string) error {
			more, err := parseRequire(list)
			require = append(require, more...)
			return err
		})
	})
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(a.stdout, usageCheck)
		return statusOK
	case err != nil:
		return a.misused("check", err)
	}
	command := ""
	if len(argv) > 0 {
		command = argv[0]
	}
	p, err := compile(o, command, probeAll)
	if err != nil {
		return a.fail(err, statusFailed)
	}
	r := newReport(a.version, p, command)
	r.Requirements = requirementsOf(p, require)
	if err := a.print(r, o.json, p.Home); err != nil {
		return a.fail(err, statusFailed)
	}
	unmet := false
	for _, q := range r.Requirements {
		if !q.Met {
			fmt.Fprintf(a.stderr, "jail: error: required: %s: %s\n", q.Text, oneLine(q.Why))
			unmet = true
		}
	}
	if unmet || !r.Enforceable || r.Command != nil && r.Command.Error != "" {
		return statusFailed
	}
	return statusOK
}

func (a app) print(r report, asJSON bool, home string) error {
	if !asJSON {
		_, err := fmt.Fprint(a.stdout, printable(r.text(home)))
		return err
	}
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
