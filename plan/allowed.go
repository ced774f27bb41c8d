package plan

import (
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"jail/rules"
)

// Allowed is one file that may be executed because a list says so, or a
// directory of such files. Nothing else may be.
type Allowed struct {
	Path string // real
	ID   ID
	Dir  bool
	Text string // the command that the rule names
	For  string // "", or why it comes with the command: "interpreter", "helper"
	At   Origin
}

// allow finds the files of the allow list, what they need to be executed and
// what they execute themselves.
func (c *compiler) allow() error {
	list, set := c.pol.Allow()
	if !set {
		return nil
	}
	c.plan.UpgradesOff, _ = c.pol.UpgradesOff()
	c.sets = helperSets()
	for _, n := range list {
		if err := c.allowOne(n); err != nil {
			return err
		}
	}
	if len(c.plan.Allowed) == 0 {
		return &Problem{At: list[0].From, What: "none of the allowed commands is here: nothing could be started", Hint: "name one that is"}
	}
	return nil
}

func (c *compiler) allowOne(n rules.Named) error {
	f, ok, err := c.allowedFile(n)
	if err != nil || !ok {
		return err
	}
	if c.access(f.path)&Exec == 0 {
		return &Problem{
			At: n.From, What: fmt.Sprintf("%q is allowed, but no exec rule reaches %q", n.Path.Text, f.path),
			Hint: fmt.Sprintf("[files] exec = [%q]", filepath.Dir(f.path)),
		}
	}
	if f.mode&0o111 == 0 {
		return &Problem{At: n.From, What: fmt.Sprintf("%q: %q is not executable", n.Path.Text, f.path), Hint: "chmod +x makes a program executable"}
	}
	prog := inspect(f.path)
	if !prog.known {
		what := "is neither a binary nor a script with a #! line: the kernel can't execute it"
		if prog.script {
			what = "has a #! line without an interpreter"
		}
		return &Problem{At: n.From, What: fmt.Sprintf("%q: %q %s", n.Path.Text, f.path, what), Hint: "mend it, or allow the interpreter and start the file with it"}
	}
	if f.mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		c.remark("%s (%s) is set-id: it runs, but gains nothing by it", f.path, n.From)
	}
	c.manyNames(n, f)
	c.take(Allowed{Path: f.path, ID: f.id, Text: n.Path.Text, At: n.From}, prog)
	return c.ownHelpers(n)
}

func (c *compiler) allowedFile(n rules.Named) (f file, ok bool, err error) {
	if f, ok, err = c.ownFile(n); err != nil || ok {
		return f, ok, err
	}
	if !n.Bare {
		return c.fileAt(n.Path, n.From)
	}
	if f, ok = c.inPath(n.Path.Text); ok {
		return f, true, nil
	}
	if n.Path.Optional {
		c.missing(n.Path.Text, n.From)
		return file{}, false, nil
	}
	return file{}, false, notFound(n)
}

// manyNames says when a file is another program under another name.
func (c *compiler) manyNames(n rules.Named, f file) {
	var st unix.Stat_t
	if unix.Lstat(f.path, &st) != nil {
		return
	}
	name, real := filepath.Base(n.Path.Text), filepath.Base(f.path)
	switch {
	case multiCall(real):
		c.remark("%s (%s) is %s, many commands in one file: all of them are allowed with it", n.Path.Text, n.From, f.path)
	case st.Nlink > 1:
		c.remark("%s (%s) is a file with %d names: all of them are allowed with it", f.path, n.From, st.Nlink)
	case name != real:
		c.remark("%s (%s) is %s", n.Path.Text, n.From, f.path)
	}
}

// take allows a file, and with it its interpreters and helpers. Each is taken
// once.
func (c *compiler) take(a Allowed, prog program) {
	if slices.ContainsFunc(c.plan.Allowed, func(have Allowed) bool { return have.ID == a.ID && have.For == "" || have.ID == a.ID && a.For != "" }) {
		return
	}
	c.plan.Allowed = append(c.plan.Allowed, a)
	for _, path := range []string{prog.interpreter, c.pathOf(prog.throughEnv())} {
		if filepath.IsAbs(path) {
			c.takePath(path, Allowed{Text: a.Text, For: "interpreter", At: a.At})
		}
	}
	c.helpers(a, prog)
}

// pathOf is where PATH has a program, "" if nowhere.
func (c *compiler) pathOf(name string) string {
	f, _ := c.inPath(name)
	return f.path
}

// takePath allows what comes with a command, if it is there and an exec rule
// reaches it.
func (c *compiler) takePath(path string, a Allowed) bool {
	real, exists, err := c.view.real(filepath.Clean(path))
	if err != nil || !exists || c.access(real)&Exec == 0 {
		return false
	}
	n := c.view.lstat(real)
	a.Path, a.ID, a.Dir = real, n.id, n.mode.IsDir()
	switch {
	case a.Dir:
		if !slices.ContainsFunc(c.plan.Allowed, func(have Allowed) bool { return have.ID == a.ID }) {
			c.plan.Allowed = append(c.plan.Allowed, a)
		}
		return true
	case !n.mode.IsRegular():
		return false
	}
	c.take(a, inspect(real))
	return true
}

// ownHelpers allows what [[command]] lists for a command.
func (c *compiler) ownHelpers(n rules.Named) error {
	for cmd := range c.pol.Commands() {
		if cmd.Path.Text != n.Path.Text {
			continue
		}
		for _, h := range cmd.Helpers {
			if err := c.ownHelper(n, h, cmd.AtHelpers); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *compiler) ownHelper(n rules.Named, h rules.Path, at Origin) error {
	path, ok := c.absolute(h)
	if named, bare := c.inPath(h.Text); bare {
		path, ok = named.path, true
	}
	if ok && c.takePath(path, Allowed{Text: n.Path.Text, For: "helper", At: at}) {
		return nil
	}
	if h.Optional {
		c.missing(h.Text, at)
		return nil
	}
	return &Problem{
		At: at, What: fmt.Sprintf("%q, a helper of %q, is not there or no exec rule reaches it", h.Text, n.Path.Text),
		Hint: `a helper is a name in PATH, a file or a directory; end it with "?" if it may be absent`,
	}
}

func (c *compiler) remark(format string, args ...any) {
	c.plan.Remarks = append(c.plan.Remarks, fmt.Sprintf(format, args...))
}
