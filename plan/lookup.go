package plan

import (
	"path/filepath"
	"slices"
	"strings"

	"jail/rules"
)

// searchPath is PATH as real directories, without those that the jail may write:
// there an earlier run could have put a program of any name.
func (c *compiler) searchPath() []string {
	if c.search != nil {
		return c.search
	}
	dirs := []string{}
	for _, dir := range filepath.SplitList(c.plan.Path) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(c.host.Cwd, dir)
		}
		real, exists, err := c.view.real(filepath.Clean(dir))
		if err == nil && exists && !slices.Contains(dirs, real) && c.access(real)&Write == 0 {
			dirs = append(dirs, real)
		}
	}
	c.search = dirs
	return dirs
}

// inPath is the first program of that name which PATH has and an exec rule
// reaches.
func (c *compiler) inPath(name string) (file, bool) {
	for _, dir := range c.searchPath() {
		if f, ok := c.fileIn(dir, name); ok && c.access(f.path)&Exec != 0 {
			return f, true
		}
	}
	return file{}, false
}

// ownFile is the file that [[command]] gives for a name.
func (c *compiler) ownFile(n rules.Named) (f file, ok bool, err error) {
	for cmd := range c.pol.Commands() {
		if cmd.File != nil && cmd.Path.Text == n.Path.Text {
			return c.fileAt(*cmd.File, cmd.AtFile)
		}
	}
	return file{}, false, nil
}

// message is what [[command]] has to say to whoever is refused the file.
func (c *compiler) message(name string, id ID) string {
	return c.plan.told(name, id)
}

// Message is told to whoever is refused a command.
type Message struct {
	Name string
	ID   ID // zero if there is no such file
	Text string
	At   Origin
}

// messages finds the files that the messages are about.
func (c *compiler) messages() error {
	for cmd := range c.pol.Commands() {
		if cmd.Message == "" {
			continue
		}
		m := Message{Name: cmd.Path.Text, Text: cmd.Message, At: cmd.From}
		f, ok := c.inPath(cmd.Path.Text)
		if own, has, err := c.ownFile(cmd.Named); err != nil {
			return err
		} else if has {
			f, ok = own, true
		}
		if ok {
			m.ID = f.id
		}
		c.plan.Messages = append(c.plan.Messages, m)
	}
	return nil
}

// dataDirs hold no programs and are not looked into; many have thousands of
// entries.
func dataDir(name string) bool {
	return strings.HasSuffix(name, ".d") || strings.HasPrefix(name, "python") || slices.Contains([]string{
		"share", "include", "src", "man", "doc", "etc", "var", "locale", "terminfo", "node_modules", "site-packages", "dist-packages", "pkg", "debug", "mime", "X11", "firmware", "pkgconfig", "modules", "ssl", "sasl2",
	}, name)
}

// maxProgramDirs bounds how many directories are listed in one exec tree: in a
// package store there may be any number, and nothing in it is in PATH by itself.
const maxProgramDirs = 400

// programDirs lists the regular files in the directories where programs lie:
// those in PATH, and in each exec tree the tree itself, what is called bin, sbin
// or the like, and some levels of what is in lib. It is no walk of the tree: that
// would take a second for /usr.
func (c *compiler) programDirs() map[string][]string {
	if c.programs != nil {
		return c.programs
	}
	c.programs = map[string][]string{}
	for _, dir := range c.searchPath() {
		if c.access(dir)&Exec != 0 {
			c.programsIn(dir)
		}
	}
	for _, x := range c.trees(Exec) {
		budget := maxProgramDirs
		if x.Dir {
			c.programsBelow(x.Path, 0, &budget)
		}
	}
	return c.programs
}

// programsIn lists one directory, and returns the directories in it.
func (c *compiler) programsIn(dir string) (subdirs []string) {
	names := []string{}
	for _, e := range c.view.list(dir).entries {
		switch {
		case e.isRegular() && !isData(e.name):
			names = append(names, e.name)
		case e.isDir():
			subdirs = append(subdirs, e.name)
		}
	}
	c.programs[dir] = names
	return subdirs
}

// programsBelow goes three levels deep, and to a bin directory one more.
func (c *compiler) programsBelow(dir string, depth int, budget *int) {
	if _, seen := c.programs[dir]; seen && depth > 0 {
		return
	}
	if *budget--; *budget < 0 {
		return
	}
	full := isProgramDir(filepath.Base(dir))
	for _, name := range c.programsIn(dir) {
		sub := filepath.Join(dir, name)
		switch {
		case full:
			c.programsIn(sub)
		case isProgramDir(name):
			c.programsBelow(sub, depth+1, budget)
		case dataDir(name) || strings.Contains(name, "-linux-"):
		case depth < 2:
			c.programsBelow(sub, depth+1, budget)
		default:
			if bin := filepath.Join(sub, "bin"); c.view.lstat(bin).mode.IsDir() {
				c.programsIn(bin)
			}
		}
	}
}

// isData tells by its name what no program is called, to save a look at each.
func isData(name string) bool {
	return isLibrary(name) || slices.Contains([]string{
		".a", ".o", ".h", ".hpp", ".c", ".py", ".pyc", ".pm", ".pl", ".js", ".json", ".conf", ".service", ".txt", ".md", ".html", ".xml", ".mo", ".gz",
	}, filepath.Ext(name))
}

// isProgramDir tells whether a directory of this name is full of programs.
func isProgramDir(name string) bool {
	return slices.Contains([]string{"bin", "sbin", "libexec", "games", "git-core", "shims"}, name)
}
