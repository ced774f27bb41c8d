package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"jail/digest"
	"jail/plan"
	"jail/rules"
)

// maxRules bounds a rule file: 256 KiB are some thousand rules.
const maxRules = 256 << 10

// ruleFile is the name of the project's rule file, and of the user's own.
const ruleFile = "jail.toml"

// compile gathers what is in play and makes the plan for what probe finds.
func compile(o options, command string, probe func(*plan.Host)) (plan.Plan, error) {
	h, err := host()
	if err != nil {
		return plan.Plan{}, err
	}
	if err := lostRoot(h); err != nil {
		return plan.Plan{}, err
	}
	in, err := input(o, command, h)
	if err != nil {
		return plan.Plan{}, err
	}
	pol, err := rules.Parse(in)
	if err != nil {
		return plan.Plan{}, err
	}
	probe(&h)
	if !pol.NamesCommands() {
		return plan.Compile(pol, h)
	}
	h.Digests = digest.Open(filepath.Join(configDir(h.Home), digestFile))
	p, err := plan.Compile(pol, h)
	if err == nil && pol.NamesDigests() {
		h.Digests.Save() // else a run leaves HOME as it is
	}
	return p, err
}

// input is everything that decides the policy.
func input(o options, command string, h plan.Host) (rules.Input, error) {
	sources, err := sources(o, h)
	if err != nil {
		return rules.Input{}, err
	}
	flags := o.flags
	flags.Protect = slices.Clone(flags.Protect)
	for _, s := range sources {
		if s.Lock != nil {
			flags.Protect = append(flags.Protect, literal(s.LockName))
		}
	}
	if o.rulesFile != "" {
		// An agent that can edit the file would choose what the next run may do.
		flags.Protect = append(flags.Protect, literal(o.rulesFile))
	}
	return rules.Input{Sources: sources, Flags: flags, Command: filepath.Base(command), Markers: markers(h.Tree.Root)}, nil
}

// digestFile remembers the digests of programs. It lies in jail's own directory,
// which no write grant may reach.
const digestFile = "digests"

// literal writes a path so that no character of it is a pattern.
func literal(path string) string {
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(path)
}

// host collects what the plan must know about the caller.
func host() (plan.Host, error) {
	cwd, err := workingDir()
	if err != nil {
		return plan.Host{}, err
	}
	home, err := homeDir()
	if err != nil {
		return plan.Host{}, err
	}
	h := plan.Host{
		Home: home, Cwd: cwd, UID: os.Getuid(), Env: os.Environ(), Temp: os.TempDir(),
		Own: []string{configDir(home), stateDir(home)}, State: stateDir(home), Tree: plan.FindTree(cwd, os.Getuid()),
	}
	if h.Temp, err = filepath.EvalSymlinks(h.Temp); err != nil {
		return plan.Host{}, &plan.Problem{
			What: fmt.Sprintf("the directory for temporary files, %q: %v", os.TempDir(), plan.Cause(err)),
			Hint: "set TMPDIR to a directory that exists",
		}
	}
	return h, nil
}

// workingDir is the real path of the working directory, as the kernel knows it.
func workingDir() (string, error) {
	dir, err := syscall.Getwd()
	if err != nil || !filepath.IsAbs(dir) {
		return "", &plan.Problem{What: "the working directory does not exist any more", Hint: "change to another directory first"}
	}
	return dir, nil
}

func homeDir() (string, error) {
	home := os.Getenv("HOME")
	if home == "" {
		u, err := user.Current()
		if err != nil {
			return "", &plan.Problem{What: "HOME is not set and the user is not in /etc/passwd", Hint: "set HOME"}
		}
		home = u.HomeDir
	}
	if !filepath.IsAbs(home) {
		return "", &plan.Problem{What: fmt.Sprintf("HOME is %q, not an absolute path", home), Hint: "set HOME"}
	}
	return filepath.Clean(home), nil
}

// configDir is where the user's rule file and the trust records lie.
func configDir(home string) string {
	base := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) { // the base directory specification says to ignore it
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "jail")
}

// sources reads the user's rule file and then the project's, or the one that
// --rules names.
func sources(o options, h plan.Host) ([]rules.Source, error) {
	var out []rules.Source
	user := filepath.Join(configDir(h.Home), ruleFile)
	text, err := readRules(user)
	switch {
	case err == nil:
		s, err := withLock(rules.Source{Kind: rules.UserFile, Name: oneLine(user), Text: text}, user)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, unreadable(user, err)
	}
	if o.rulesFile != "" {
		text, err := readRules(o.rulesFile)
		if err != nil {
			return nil, unreadable(o.rulesFile, err)
		}
		s, err := withLock(rules.Source{Kind: rules.RulesFile, Name: oneLine(o.rulesFile), Text: text}, o.rulesFile)
		return append(out, s), err
	}
	project, err := projectRules(h)
	if err != nil || project == nil {
		return out, err
	}
	s, err := withLock(*project, filepath.Join(h.Tree.Root, ruleFile))
	return append(out, s), err
}

// projectRules reads the project's rule file, if there is one, and refuses it
// unless its very bytes were trusted: an agent can edit the file.
func projectRules(h plan.Host) (*rules.Source, error) {
	path := filepath.Join(h.Tree.Root, ruleFile)
	known, err := trusted(configDir(h.Home))
	if err != nil {
		return nil, err
	}
	text, err := readRules(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingRules(known, h.Tree.Root)
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	switch known[path] {
	case sumOf(text):
		return &rules.Source{Kind: rules.ProjectFile, Name: oneLine(path), Text: text}, nil
	case "":
		return nil, &plan.Problem{
			What: fmt.Sprintf("%q is not trusted yet", path), Hint: "read it, then run `jail trust`; or name another file with --rules",
		}
	}
	return nil, &plan.Problem{
		What: fmt.Sprintf("%q has changed since it was trusted", path), Hint: "read what changed, then run `jail trust` again",
	}
}

// missingRules refuses a project without a rule file where there has been a
// trusted one, here or further up: removing it, or making a repository below it,
// must not set an agent free of it.
func missingRules(known map[string]string, root string) error {
	for dir := root; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, ruleFile)
		switch {
		case known[path] == "":
		case dir == root:
			return &plan.Problem{
				What: fmt.Sprintf("%q is trusted, but it is not there any more", path),
				Hint: "put it back, or run `jail trust` to forget it",
			}
		default:
			return &plan.Problem{
				What: fmt.Sprintf("%q is trusted, but the project here is %q, without a rule file", path, root),
				Hint: "start from the directory of that file, remove the .git between, or write and trust a jail.toml here",
			}
		}
		if dir == "/" {
			return nil
		}
	}
}

// readRules reads a regular file of bounded size, without waiting for a fifo.
func readRules(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case fi.Size() > maxRules:
		return nil, errors.New("larger than 256 KiB, no rule file is")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxRules+1))
	if err == nil && len(text) > maxRules {
		err = errors.New("larger than 256 KiB, no rule file is")
	}
	return text, err
}

func unreadable(path string, err error) error {
	return &plan.Problem{
		What: fmt.Sprintf("rule file %q: %v", path, plan.Cause(err)),
		Hint: "a rule file is a regular, readable TOML file; `jail init` writes one to start from",
	}
}

// markers lists the files of the project that choose profiles.
func markers(root string) []string {
	var found []string
	for _, name := range rules.Markers() {
		if fi, err := os.Lstat(filepath.Join(root, name)); err == nil && !fi.IsDir() {
			found = append(found, name)
		}
	}
	return found
}

func tilde(path, home string) string {
	if rest, ok := strings.CutPrefix(path, home+"/"); ok && home != "/" {
		return "~/" + rest
	}
	return path
}

// parseable tells whether a text is a valid rule file.
func parseable(path string, text []byte) error {
	_, err := rules.Parse(rules.Input{Sources: []rules.Source{{Kind: rules.ProjectFile, Name: oneLine(path), Text: text}}})
	return err
}
