package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jail/plan"
	"jail/rules"
)

// lockFile is the lock file beside a rule file.
func lockFile(rulesPath string) string {
	return strings.TrimSuffix(rulesPath, ".toml") + ".lock"
}

// withLock adds the lock file beside a source, if there is one.
func withLock(s rules.Source, path string) (rules.Source, error) {
	lock := lockFile(path)
	text, err := readRules(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, &plan.Problem{
			What: fmt.Sprintf("lock file %q: %v", lock, plan.Cause(err)), Hint: "`jail lock` writes one; without the file nothing is locked",
		}
	}
	s.Lock, s.LockName = text, oneLine(lock)
	return s, nil
}

// lock is `jail lock`: write down what each allowed command is.
func (a app) lock(args []string) int {
	var o options
	update := false
	words, err := o.parse("lock", args, func(fs *flag.FlagSet) { fs.BoolVar(&update, "update", false, "") })
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(a.stdout, usageLock)
		return statusOK
	case err != nil:
		return a.misused("lock", err)
	case len(words) > 0:
		return a.misused("lock", fmt.Errorf("%q is not expected here", words[0]))
	}
	if err := a.writeLock(o, update); err != nil {
		return a.fail(err, statusFailed)
	}
	return statusOK
}

func (a app) writeLock(o options, update bool) error {
	old, entries, path, err := lockEntries(o)
	if err != nil {
		return err
	}
	text, err := rules.FormatLock(entries)
	if err != nil {
		return err
	}
	if bytes.Equal(old, text) {
		fmt.Fprintf(a.stderr, "jail: %q is up to date\n", path)
		return nil
	}
	before, broken := rules.ParseLock(path, old)
	if old == nil {
		before, broken = nil, nil
	}
	if broken != nil && !update {
		return broken
	}
	fmt.Fprint(a.stdout, printable(lockDiff(before, entries)))
	if old != nil && !update {
		return &plan.Problem{What: fmt.Sprintf("%q says something else", path), Hint: "`jail lock --update` writes the new lines, if they are right"}
	}
	err = replaceFile(path, text)
	if err == nil {
		err = os.Chmod(path, 0o644) // to be kept in the repository
	}
	if err != nil {
		return &plan.Problem{What: fmt.Sprintf("%q can't be written: %v", path, plan.Cause(err)), Hint: "inside a jail the lock is protected; outside, make its directory writable"}
	}
	fmt.Fprintf(a.stderr, "jail: wrote %q, %d commands\n", path, len(entries))
	return nil
}

// lockEntries finds out what the lock file of the rule file in play should say,
// and what it says now.
func lockEntries(o options) (old []byte, entries []rules.Locked, path string, err error) {
	h, err := host()
	if err != nil {
		return nil, nil, "", err
	}
	list, err := sources(o, h)
	if err != nil {
		return nil, nil, "", err
	}
	file := o.rulesFile
	if file == "" {
		file = filepath.Join(h.Tree.Root, ruleFile)
	}
	i := slices.IndexFunc(list, func(s rules.Source) bool { return s.Kind != rules.UserFile })
	if i < 0 {
		return nil, nil, "", &plan.Problem{What: fmt.Sprintf("%q does not exist: there is nothing to lock", file), Hint: "name a rule file with --rules"}
	}
	old, list[i].Lock = list[i].Lock, nil
	pol, err := rules.Parse(rules.Input{Sources: list, Flags: o.flags, Markers: markers(h.Tree.Root)})
	if err != nil {
		return nil, nil, "", err
	}
	entries, err = plan.Lock(pol, h, i+1)
	if err == nil && len(entries) == 0 {
		err = &plan.Problem{
			What: fmt.Sprintf("%q allows no commands by name: there is nothing to lock", file),
			Hint: `a lock is for [commands] allow = ["bash", ...]`,
		}
	}
	slices.SortFunc(entries, func(a, b rules.Locked) int { return strings.Compare(a.Name, b.Name) })
	addPackages(entries)
	return old, entries, lockFile(file), err
}

// lockDiff shows what changes, as diff(1) would.
func lockDiff(before, after []rules.Locked) string {
	var b strings.Builder
	line := func(sign string, e rules.Locked) {
		fmt.Fprintf(&b, "%s %s %s sha256 %s %s\n", sign, e.Name, e.Path, e.SHA256, strings.TrimSpace(e.Package+" "+e.Version))
	}
	same := func(x, y rules.Locked) bool {
		x.At, y.At = rules.Origin{}, rules.Origin{}
		return x == y
	}
	for _, e := range before {
		if !slices.ContainsFunc(after, func(n rules.Locked) bool { return same(n, e) }) {
			line("-", e)
		}
	}
	for _, n := range after {
		if !slices.ContainsFunc(before, func(e rules.Locked) bool { return same(n, e) }) {
			line("+", n)
		}
	}
	return b.String()
}

const usageLock = `jail lock [flags] [--update]

Write down what each command of [commands] allow is: its path, SHA-256, and
Debian package and version if it has one. The lock file lies beside the rule
file (jail.lock beside jail.toml) and is enforced as long as it is there: jail
does not start when a command is another file than the one that was locked.

  --rules FILE    of FILE instead of the project's jail.toml
  --update        replace a lock file that says something else

Either way what changes is shown. Exit status: 0; 1 if the rules are wrong or the
lock file says something else and --update is not given; 2 usage.

Examples:
  jail lock
  jail lock --update
`
