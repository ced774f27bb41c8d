package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kind tells how far a source is trusted and what its paths are relative to.
type Kind int

// The kinds of source, in the order in which they are read; order never
// changes the result.
const (
	Profile Kind = iota // built in: may not waive anything
	UserFile
	ProjectFile // the caller has checked that it is trusted
	RulesFile   // --rules
)

// Source is one rule file.
type Source struct {
	Kind Kind
	Name string // shown in errors
	Text []byte
	// Lock is the text of the lock file beside it, nil if there is none.
	Lock     []byte
	LockName string
}

// Flags are rules from the command line. Their relative paths start at the
// working directory.
type Flags struct {
	Profiles, Read, Write, Exec, Protect, Hide, Env, Waive []string
}

// Input is everything that decides a Policy.
type Input struct {
	Sources []Source // files; profiles are added by Parse
	Flags   Flags
	Command string   // base name of the command, chooses an agent's profile
	Markers []string // those of Markers() that the project has
}

// Parse merges the sources, the profiles they name (or, when no source names
// any, the ones that fit the command and the project) and the flags.
func Parse(in Input) (Policy, error) {
	var files []*file
	for i, s := range in.Sources {
		f, err := decode(s, i+1)
		if err != nil {
			return Policy{}, err
		}
		files = append(files, f)
	}
	names, err := chooseProfiles(files, in)
	if err != nil {
		return Policy{}, err
	}
	all := slices.Clone(names.files)
	all = append(all, files...)
	m := merger{}
	for _, f := range all {
		if err := m.add(f); err != nil {
			return Policy{}, err
		}
	}
	if err := m.addFlags(in.Flags); err != nil {
		return Policy{}, err
	}
	m.p.profiles = names.names
	return m.p, nil
}

// merger builds a Policy. Each rule of merging is a method of few lines.
type merger struct {
	p       Policy
	refused []string // booleans that some file set to the stricter value
	guarded bool     // some file asked for the report
}

func (m *merger) add(f *file) error {
	for _, step := range []func(*file) error{
		checkHeader, m.addFiles, m.addSeeds, m.addCaches, m.addWaivers, m.addNetwork,
		m.addEnv, m.addLimits, m.addArtifact, m.addGuides, m.addCommands, m.addProfile, m.addGuard,
	} {
		if err := step(f); err != nil {
			return err
		}
	}
	return nil
}

func checkHeader(f *file) error {
	if f.md.IsDefined("version") && f.Version != 1 {
		return problem(f.at("version"), "write version = 1, or use a jail that knows the newer format",
			"version %d is not known", f.Version)
	}
	for _, k := range []string{"profile", "seed", "cache"} {
		if f.Kind != Profile && f.md.IsDefined(k) {
			return problem(f.anyLine(k), "", "%q is for built-in profiles", k)
		}
	}
	return nil
}

func (m *merger) addFiles(f *file) error {
	for _, l := range []struct {
		key    string
		list   []string
		access Access
		create bool
	}{
		{"files.read", f.Files.Read, Read, false},
		{"files.write", f.Files.Write, Write, false},
		{"files.exec", f.Files.Exec, Exec, false},
		{"files.create", f.Files.Create, Write, true},
	} {
		for i, text := range l.list {
			if err := m.addGrant(text, l.access, l.create, f.elem(l.key, i), false, f.by()); err != nil {
				return err
			}
		}
	}
	for i, text := range f.Files.Protect {
		if err := m.addCarve(text, false, f.elem("files.protect", i), false); err != nil {
			return err
		}
	}
	for i, text := range f.Files.Hide {
		if err := m.addCarve(text, true, f.elem("files.hide", i), false); err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) addGrant(text string, a Access, create bool, from Origin, flag bool, by By) error {
	p, why := parsePath(text, false)
	if why == "" && create && p.Optional {
		why = `what is created can't be optional: drop the "?"`
	}
	if why != "" {
		return problem(from, "", "%q: %s", text, why)
	}
	p.Flag = flag
	m.p.grants = append(m.p.grants, Grant{Path: p, Access: a, Create: create, By: by, From: from})
	return nil
}

func (m *merger) addCarve(text string, hide bool, from Origin, flag bool) error {
	p, why := parsePath(text, true)
	if why != "" {
		return problem(from, "", "%q: %s", text, why)
	}
	p.Flag = flag
	m.p.carves = append(m.p.carves, Carve{Path: p, Hide: hide, From: from})
	return nil
}

func (m *merger) addSeeds(f *file) error {
	for i, s := range f.Seed {
		at := f.at(fmt.Sprintf("seed[%d]", i))
		from, why1 := parsePath(s.From, false)
		to, why2 := parsePath(s.To, false)
		if why := cmp.Or(why1, why2); why != "" {
			return problem(at, "", "seed: %s", why)
		}
		m.p.seeds = append(m.p.seeds, Seed{File: from, To: to, From: at})
	}
	return nil
}

func (m *merger) addCaches(f *file) error {
	for i, c := range f.Cache {
		at := f.at(fmt.Sprintf("cache[%d]", i))
		dir, why := parsePath(c.Dir, false)
		if why == "" && !isEnvName(c.Variable) {
			why = fmt.Sprintf("%q is not the name of an environment variable", c.Variable)
		}
		if why != "" {
			return problem(at, "", "cache: %s", why)
		}
		m.p.caches = append(m.p.caches, Cache{Dir: dir, Variable: c.Variable, Private: c.Private, From: at})
	}
	return nil
}

func (m *merger) addWaivers(f *file) error {
	if f.Kind == Profile && len(f.Waive) > 0 {
		return problem(f.at("waive"), "", "a profile can't waive anything")
	}
	for i, name := range f.Waive {
		if err := m.addWaiver(name, f.elem("waive", i)); err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) addWaiver(name string, from Origin) error {
	if !slices.Contains(WaiverNames(), name) {
		hint := suggest(name, WaiverNames(), "waivers are: "+strings.Join(WaiverNames(), ", "))
		return problem(from, hint, "%q can't be waived", name)
	}
	m.p.waivers = append(m.p.waivers, Waiver{Name: name, From: from})
	return nil
}

// WaiverNames lists what a user may accept to lose. "mounts" stands for all
// that only a private mount and pid namespace holds; the others for what
// Landlock holds from some ABI on, when that namespace is not there either.
func WaiverNames() []string {
	return []string{"mounts", "truncate", "ports", "signals"}
}

// addGuard: the report is on unless every file that speaks of it says false.
func (m *merger) addGuard(f *file) error {
	if f.Guard == nil {
		return nil
	}
	if *f.Guard {
		m.guarded = true
	}
	m.p.noGuard = !m.guarded
	return nil
}

func (m *merger) addProfile(f *file) error {
	if len(f.document.Profile.Options) > 0 {
		m.p.options = append(m.p.options, StartOption{
			Profile: strings.TrimPrefix(f.Name, inProfile),
			Options: f.document.Profile.Options, Why: f.document.Profile.Why,
		})
	}
	return nil
}

func (m *merger) addFlags(fl Flags) error {
	at := func(name string) Origin { return Origin{File: "--" + name, Source: -1} }
	for _, g := range []struct {
		name   string
		list   []string
		access Access
	}{{"read", fl.Read, Read}, {"write", fl.Write, Write}, {"exec", fl.Exec, Exec}} {
		for _, text := range g.list {
			if err := m.addGrant(text, g.access, false, at(g.name), true, ByUser); err != nil {
				return err
			}
		}
	}
	for _, c := range []struct {
		name string
		list []string
	}{{"protect", fl.Protect}, {"hide", fl.Hide}} {
		for _, text := range c.list {
			if err := m.addCarve(text, c.name == "hide", at(c.name), true); err != nil {
				return err
			}
		}
	}
	for _, text := range fl.Env {
		if err := m.addPass(text, at("env"), ByUser); err != nil {
			return err
		}
	}
	for _, name := range fl.Waive {
		if err := m.addWaiver(name, at("waive")); err != nil {
			return err
		}
	}
	return nil
}
