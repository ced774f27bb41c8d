package plan

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"

	"jail/rules"
)

// carves anchors the carve-outs and finds what each would have to take away.
// One that no grant reaches holds by itself.
func (c *compiler) carves() error {
	for cv := range c.pol.Carves() {
		path, ok := c.absolute(cv.Path)
		if !ok {
			c.missing(cv.Path.Text, cv.From)
			continue
		}
		c.carve(cv, path)
	}
	c.repositories()
	if err := c.patterns(); err != nil {
		return err
	}
	return c.reopen()
}

// patternBudget bounds the walk for patterns; an overrun is an error, since a
// carve-out that was skipped would be believed to hold.
const patternBudget = 3 * time.Second

// patterns replaces each pattern in a grant by what it matches now.
func (c *compiler) patterns() error {
	if !c.plan.Mounts {
		return nil
	}
	deadline := time.Now().Add(patternBudget)
	var out []Carve
	for _, cv := range c.plan.Carves {
		if !cv.Glob || !cv.Open() {
			out = append(out, cv)
			continue
		}
		matches, err := matches(cv.Path, deadline)
		if err != nil {
			return &Problem{
				At: cv.At, What: fmt.Sprintf("%q: %v", cv.Path, err),
				Hint: "name directories before the first *, or grant less",
			}
		}
		for _, path := range matches {
			out = append(out, Carve{Path: path, Hide: cv.Hide, At: cv.At, Reached: c.reached(path)})
		}
		if len(matches) == 0 {
			cv.Absent = true
			out = append(out, cv)
		}
	}
	c.plan.Carves = out
	c.otherMounts()
	return c.otherNames()
}

// otherMounts carves out what is carved out where another mount shows it, or a part of
// it, as well.
func (c *compiler) otherMounts() {
	for _, cv := range c.plan.Carves {
		if cv.Absent || cv.Glob {
			continue
		}
		for _, path := range append(c.namesOf(cv.Path)[1:], c.partsOf(cv)...) {
			cv.Path, cv.Reached, cv.Copy = path, c.reached(path), false
			if cv.Open() && !slices.Contains(c.plan.Carves, cv) {
				c.plan.Carves = append(c.plan.Carves, cv)
			}
		}
	}
}

// partsOf lists the mounts elsewhere of what lies in something that is carved out, but
// those that a rule of the same file names: they are reopened.
func (c *compiler) partsOf(cv Carve) (out []string) {
	is, ok := c.pieceOf(cv.Path)
	for _, m := range c.mounts {
		named := slices.ContainsFunc(c.plan.grants, func(g Grant) bool {
			return g.Path == m.Mountpoint && slices.ContainsFunc(g.From, func(u Use) bool { return u.At.Source == cv.At.Source || u.At.Source == flagSource })
		})
		part := ok && m.Major == is.major && m.Minor == is.minor && m.Root != is.path && within(m.Root, is.path)
		if part && !named && !within(m.Mountpoint, cv.Path) {
			out = append(out, m.Mountpoint)
		}
	}
	return out
}

// otherNames carves out every other name of a file that is carved out: through a hard
// link it could be read or written all the same.
func (c *compiler) otherNames() error {
	files, hidden := map[ID]Carve{}, false
	for _, cv := range c.plan.Carves {
		var st unix.Stat_t
		if !cv.Absent && !cv.Glob && unix.Lstat(cv.Path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 1 {
			files[ID{Dev: st.Dev, Ino: st.Ino}] = cv
			hidden = hidden || cv.Hide
		}
	}
	if len(files) == 0 {
		return nil
	}
	for _, w := range c.trees(Write) {
		if err := c.namesBelow(w, w.Path, files); err != nil {
			return err
		}
	}
	for _, x := range c.trees(Read) {
		if !hidden || x.Access&Write != 0 {
			continue
		}
		for _, dir := range c.mine(x.Path) { // others nobody without privilege makes links in
			if err := c.namesBelow(x, dir, files); err != nil {
				return err
			}
		}
	}
	return nil
}

// namesBelow carves out the names that some files have in a directory of a tree.
func (c *compiler) namesBelow(tree Grant, dir string, files map[ID]Carve) error {
	seen := 0
	return walkFiles(dir, c.host.UID, func(f seenFile) error {
		seen++
		cv, ok := files[f.id()]
		cv.Path, cv.Reached = f.path(), tree.Access
		known := func(have Carve) bool { return have.Path == cv.Path && have.Hide == cv.Hide }
		if ok && cv.Open() && !slices.ContainsFunc(c.plan.Carves, known) {
			c.plan.Carves = append(c.plan.Carves, cv)
		}
		if seen < maxLinkWalk {
			return nil
		}
		return &Problem{
			At: tree.From[0].At, What: fmt.Sprintf("%q has too many files to look for other names of what is carved out", dir),
			Hint: "replace hard links by copies, or grant less",
		}
	})
}

// matches lists what a pattern matches, without following links. What matches
// below a match is covered with it.
func matches(pattern string, deadline time.Time) ([]string, error) {
	base, rest := doublestar.SplitPattern(pattern)
	var out []string
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if time.Now().After(deadline) {
			return fmt.Errorf("the walk takes longer than %v", patternBudget)
		}
		rel, relErr := filepath.Rel(base, path)
		if err != nil || relErr != nil || d.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		if rel == "." && rest != "**" {
			return nil // "*" matches the name ".", which is not in the directory but it
		}
		ok, err := doublestar.Match(rest, rel)
		if ok {
			out = append(out, path)
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return err
	})
	return out, err
}

func (c *compiler) carve(cv rules.Carve, path string) {
	out := Carve{Path: path, Glob: cv.Path.Glob, Hide: cv.Hide, At: cv.From}
	top := path
	if out.Glob {
		top, _ = doublestar.SplitPattern(path)
	}
	real, exists, err := c.view.real(top)
	switch {
	case err != nil || !exists && (cv.Path.Optional || !out.Glob):
		out.Absent = true
	case !out.Glob:
		out.Path = real
	}
	if err == nil && !(cv.Hide && exists && c.barred(real)) {
		out.Reached = c.reached(real)
	}
	if cv.Hide && !out.Glob && strings.HasPrefix(cv.Path.Text, "~/") && err == nil {
		c.secrets = append(c.secrets, secret{cv.Path.Text, real, exists})
	}
	c.plan.Carves = append(c.plan.Carves, out)
}

// reached is the access at path or at any grant beneath it.
func (c *compiler) reached(path string) Access {
	a := c.access(path)
	for _, g := range c.plan.grants {
		if within(g.Path, path) {
			a |= g.Access
		}
	}
	return a
}

// barred tells whether file modes keep the user out by themselves, and can't be
// changed by the user.
func (c *compiler) barred(path string) bool {
	return c.host.UID != 0 && !ownedBy(path, c.host.UID) &&
		unix.Access(path, unix.R_OK) != nil && unix.Access(path, unix.X_OK) != nil
}

// Open tells whether grants would allow what the carve-out takes away.
func (c Carve) Open() bool {
	if c.Absent {
		return false
	}
	if c.Hide {
		return c.Reached != 0
	}
	return c.Reached&Write != 0
}

// Word is the key that makes such a carve-out.
func (c Carve) Word() string {
	if c.Hide {
		return "hide"
	}
	return "protect"
}

// tree refuses a project tree that would grant too much: with ~/.ssh as the
// working directory its keys would be the project.
func (c *compiler) tree() error {
	root, used := c.host.Tree.Root, c.access(c.host.Tree.Root) != 0
	if !used {
		return nil
	}
	refuse := func(what string) error {
		return &Problem{
			What: fmtTree(root, what),
			Hint: "change to the directory of one project first",
		}
	}
	home, _, _ := c.view.real(c.host.Home)
	for _, shared := range []string{"/tmp", "/var/tmp", "/dev/shm", c.host.Temp} {
		if root == shared {
			return refuse("is shared by all programs")
		}
	}
	switch {
	case root == "/":
		return refuse("is the root of the file system")
	case home != "" && root == home:
		return refuse("is your home directory")
	case home != "" && home != "/" && within(home, root):
		return refuse("contains your home directory")
	}
	for _, dir := range c.host.Own {
		if real, _, err := c.view.real(dir); err == nil && (within(real, root) || within(root, real)) {
			return refuse("holds jail's own files")
		}
	}
	return c.secretTree(root, refuse)
}

// secret is a hidden path under HOME.
type secret struct {
	text   string
	real   string
	exists bool
}

func (c *compiler) secretTree(root string, refuse func(string) error) error {
	for _, s := range c.secrets {
		if within(root, s.real) || s.exists && within(s.real, root) {
			return refuse("holds secrets (" + s.text + ")")
		}
	}
	return nil
}

func fmtTree(root, what string) string {
	return "the project tree would be \"" + root + "\", which " + what
}
