package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"jail/rules"
)

// options are the flags that choose rules; run and check share them.
type options struct {
	rulesFile string
	flags     rules.Flags
	verbose   bool
	json      bool
	guardJSON string // of run only
}

// errHelp says that the usage was asked for.
var errHelp = flag.ErrHelp

// newFlags is a set of flags that says nothing by itself: the words are ours.
func newFlags(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	return fs
}

// parse reads flags up to the first word that is none, or "--".
func (o *options) parse(name string, args []string, more func(*flag.FlagSet)) (rest []string, err error) {
	fs := newFlags(name)
	fs.Func("rules", "", once(&o.rulesFile))
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
		return nil, flagError(fs, err)
	}
	return fs.Args(), nil
}

// flagError words what package flag says with the two dashes that our usage has.
func flagError(fs *flag.FlagSet, err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		var names []string
		fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		if near := rules.Nearest(name, names); near != "" && len(name) > 2 {
			return fmt.Errorf("there is no flag --%s (did you mean --%s?)", name, near)
		}
		return fmt.Errorf("there is no flag --%s", name)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return fmt.Errorf("--%s needs a value", name)
	}
	if _, why, ok := strings.Cut(text, " for flag -"); ok {
		name, why, _ := strings.Cut(why, ": ")
		return fmt.Errorf("--%s %s", name, why)
	}
	return err
}

// once refuses a second value instead of letting the last one win.
func once(into *string) func(string) error {
	return func(v string) error {
		if v == "" {
			return errors.New("has an empty value")
		}
		if *into != "" {
			return errors.New("is given twice")
		}
		*into = v
		return nil
	}
}
