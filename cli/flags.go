package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"jail/rules"
)

// options are the flags that choose rules; run and check share them.
type options struct {
	rulesFile string
	flags     rules.Flags
	verbose   bool
	json      bool
}

// errHelp says that the usage was asked for.
var errHelp = flag.ErrHelp

// parse reads flags up to the first word that is none, or "--".
func (o *options) parse(name string, args []string, more func(*flag.FlagSet)) (rest []string, err error) {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.Func("rules", "", once("rules", &o.rulesFile))
	for flagName, list := range map[string]*[]string{
		"profile": &o.flags.Profiles, "read": &o.flags.Read, "write": &o.flags.Write, "exec": &o.flags.Exec,
		"protect": &o.flags.Protect, "hide": &o.flags.Hide, "env": &o.flags.Env, "waive": &o.flags.Waive,
	} {
		fs.Func(flagName, "", func(v string) error {
			*list = append(*list, v)
			return nil
		})
	}
	if more != nil {
		more(fs)
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return fs.Args(), nil
}

// once refuses a second value instead of letting the last one win.
func once(name string, into *string) func(string) error {
	return func(v string) error {
		if v == "" {
			return errors.New("the value is empty")
		}
		if *into != "" {
			return fmt.Errorf("--%s is given twice", name)
		}
		*into = v
		return nil
	}
}
