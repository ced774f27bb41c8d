package rules

import (
	"iter"
	"slices"
	"strings"
)

// Named is a command that is allowed or denied: a name that is looked up in
// PATH, or a path.
type Named struct {
	Path Path // Text is the name, if Bare
	Bare bool
	From Origin
}

// Command is what a [[command]] table says of a command.
type Command struct {
	Named
	File    *Path  // where it is, instead of the first in PATH
	SHA256  string // lower case; "" if any file will do
	Message string // for whoever is refused
	Helpers []Path // what it executes and the built-in sets do not know
	// The lines of keys that can turn out wrong later.
	AtFile, AtSHA256, AtHelpers Origin
}

// Allow yields what alone is executed. set tells whether some file has a list.
func (p Policy) Allow() (list []Named, set bool) {
	return slices.Clone(p.allow), len(p.allow) > 0
}

// Deny yields what is not executed.
func (p Policy) Deny() iter.Seq[Named] { return slices.Values(p.deny) }

// Commands yields the [[command]] tables.
func (p Policy) Commands() iter.Seq[Command] { return slices.Values(p.commands) }

// UpgradesOff is the allow list that keeps files which the jail wrote from being
// executed: every list does whose own file does not set artifact.run = "seal".
func (p Policy) UpgradesOff() (at Origin, off bool) {
	return p.upgradesOff, p.upgradesOff != Origin{}
}

// NamesCommands tells whether there are rules about commands at all.
func (p Policy) NamesCommands() bool {
	return len(p.allow)+len(p.deny)+len(p.commands)+len(p.locks) > 0
}

// NamesDigests tells whether the digests of commands are compared at each start.
func (p Policy) NamesDigests() bool {
	return len(p.locks) > 0 || slices.ContainsFunc(p.commands, func(c Command) bool { return c.SHA256 != "" })
}

// Locks yields the lock files in play.
func (p Policy) Locks() iter.Seq[Lock] { return slices.Values(p.locks) }

func (m *merger) addCommands(f *file) error {
	if f.md.IsDefined("commands", "allow") {
		at := f.at("commands.allow")
		if len(f.document.Commands.Allow) == 0 {
			return problem(at, `name the commands, "bash" for one; without the key all that [files] exec reaches runs`,
				"commands.allow is empty: nothing could be started")
		}
		if f.Artifact.Run != "seal" {
			m.p.upgradesOff = at
		}
	}
	for _, l := range []struct {
		key  string
		list []string
		into *[]Named
	}{
		{"commands.allow", f.document.Commands.Allow, &m.p.allow},
		{"commands.deny", f.document.Commands.Deny, &m.p.deny},
	} {
		for i, text := range l.list {
			n, err := parseNamed(text, f.elem(l.key, i))
			if err != nil {
				return err
			}
			*l.into = append(*l.into, n)
		}
	}
	for i := range f.Command {
		if err := m.addCommand(f, i); err != nil {
			return err
		}
	}
	return m.addLock(f)
}

// parseNamed reads "git", "git?" or a path.
func parseNamed(text string, from Origin) (Named, error) {
	p, why := parsePath(text, false)
	switch {
	case why != "":
	case p.Text == "." || p.Text == "..":
		why = "is a directory, no command"
	case strings.ContainsAny(p.Text, " \t"):
		return Named{}, problem(from, "a rule names a program, whatever its arguments; [[guide]] is for those",
			"%q: the name of a command has no blanks", text)
	}
	if why != "" {
		return Named{}, problem(from, "", "%q: %s", text, why)
	}
	return Named{Path: p, Bare: !strings.ContainsAny(p.Text, "/~$"), From: from}, nil
}

// addCommand adds what one [[command]] table says to what others say of the
// same name.
func (m *merger) addCommand(f *file, i int) error {
	c, err := parseCommand(f, i)
	if err != nil {
		return err
	}
	k := slices.IndexFunc(m.p.commands, func(have Command) bool { return have.Path.Text == c.Path.Text })
	if k < 0 {
		m.p.commands = append(m.p.commands, c)
		return nil
	}
	return m.p.commands[k].join(c)
}

func parseCommand(f *file, i int) (c Command, err error) {
	t, table := f.Command[i], elementKey("command", i)
	if err := checkCommand(f, i, t.Name, t.SHA256); err != nil {
		return Command{}, err
	}
	if c.Named, err = parseNamed(t.Name, f.at(table)); err != nil {
		return Command{}, err
	}
	c.SHA256, c.Message = strings.ToLower(t.SHA256), t.Message
	c.AtFile, c.AtSHA256, c.AtHelpers = f.at(table+".path"), f.at(table+".sha256"), f.at(table+".helpers")
	if t.Path != "" {
		p, why := parsePath(t.Path, false)
		if why == "" && !strings.ContainsAny(p.Text, "/~$") {
			why = "a path is expected, with a /"
		}
		if why != "" {
			return Command{}, problem(c.AtFile, "", "%q: %s", t.Path, why)
		}
		c.File = &p
	}
	for j, text := range t.Helpers {
		p, why := parsePath(text, false)
		if why != "" {
			return Command{}, problem(f.elem(table+".helpers", j), "", "%q: %s", text, why)
		}
		c.Helpers = append(c.Helpers, p)
	}
	return c, nil
}

// join refuses what contradicts: of two digests, paths or messages none is
// stricter.
func (c *Command) join(d Command) error {
	contradicts := func(key, x, y string) error {
		if x == "" || y == "" || x == y {
			return nil
		}
		return problem(d.From, "remove one of them", "[[command]] %q: %s is %q here and %q at %s", d.Path.Text, key, y, x, c.From)
	}
	for _, err := range []error{
		contradicts("sha256", c.SHA256, d.SHA256), contradicts("message", c.Message, d.Message),
		contradicts("path", fileText(c), fileText(&d)),
	} {
		if err != nil {
			return err
		}
	}
	if c.SHA256 == "" {
		c.SHA256, c.AtSHA256 = d.SHA256, d.AtSHA256
	}
	if c.File == nil {
		c.File, c.AtFile = d.File, d.AtFile
	}
	if c.Message == "" {
		c.Message = d.Message
	}
	c.Helpers = append(c.Helpers, d.Helpers...)
	return nil
}

func fileText(c *Command) string {
	if c.File == nil {
		return ""
	}
	return c.File.Text
}
