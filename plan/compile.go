package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"

	"jail/digest"
	"jail/rules"
)

// Compile makes the plan of a policy for a host. An error means that the policy
// can't be used here at all; whether every promise can be held is a question to
// [Plan.Enforceable].
func Compile(pol rules.Policy, h Host) (Plan, error) {
	c := newCompiler(pol, h)
	for _, step := range []func() error{
		c.readMounts, c.grants, c.unixPaths, c.caches, c.gitDirs, c.sort, c.planted, c.carves, c.tree, c.own, c.absent, c.prove,
		c.commands, c.seeds, c.environment, c.artifacts, c.promises, c.peers, c.sealsPlace,
	} {
		if err := step(); err != nil {
			return Plan{}, err
		}
	}
	return c.plan, nil
}

func newCompiler(pol rules.Policy, h Host) *compiler {
	if h.Digests == nil {
		h.Digests = digest.Open("")
	}
	c := &compiler{pol: pol, host: h, view: newView()}
	c.plan = Plan{
		Profiles: pol.Profiles(), Tree: h.Tree, Home: h.Home, Cwd: h.Cwd, UID: h.UID, Temp: h.Temp,
		ABI: h.ABI, Path: h.getenv("PATH"), Guard: pol.Guard(), Network: pol.Network(),
		Limits: slices.Collect(pol.Limits()), Waivers: slices.Collect(pol.Waivers()),
		Options: slices.Collect(pol.Options()),
	}
	c.plan.Mounts = c.useMounts()
	if h.State != "" {
		c.plan.State, _, _ = c.view.real(h.State)
	}
	return c
}

// commands narrows the exec grants to what may be executed. The proof is made
// already, and in the end once more of what is left.
func (c *compiler) commands() error {
	for _, step := range []func() error{c.messages, c.allow, c.deny, c.pins, c.shrink, c.carveDenied, c.setPins, c.coverUnlisted, c.proveAllowed, c.proveAgain} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

type compiler struct {
	pol     rules.Policy
	host    Host
	view    *view
	plan    Plan
	written []written
	secrets []secret
	// absentExec are optional exec grants with nothing there yet.
	absentExec []written
	mounts     []*mountinfo.Info
	elsewhere  []string // what other profiles let a jail write; nil: not asked yet

	closed   []Grant             // that execute what is not allowed or is denied
	linked   map[ID]*linked      // files with several names that were seen in exec trees
	search   []string            // see searchPath
	programs map[string][]string // see programDirs
	sets     []helperSet
	readings []reading
	linking  bool
	pinned   []pinned
}

// written is a grant before its links were resolved.
type written struct {
	path   string
	at     Origin
	text   string
	real   string
	access Access
}

// access is Plan.Access without asking the file system twice.
func (c *compiler) access(path string) Access {
	a, _ := c.plan.explain(c.view, path)
	return a
}

// absolute expands and anchors a path as written. ok is false when it names an
// unset variable.
func (c *compiler) absolute(p rules.Path) (path string, ok bool) {
	s, ok := p.Expand(c.host.Home, c.host.getenv)
	if !ok || s == "" {
		return "", false
	}
	if !filepath.IsAbs(s) {
		base := c.host.Tree.Root
		if p.Flag {
			base = c.host.Cwd
		}
		s = filepath.Join(base, s)
	}
	return filepath.Clean(s), true
}

func (c *compiler) grants() error {
	for g := range c.pol.Grants() {
		if err := c.grant(g); err != nil {
			return err
		}
	}
	return nil
}

// caches grants those that exist and plans a private place for the others.
func (c *compiler) caches() error {
	known := map[string]bool{} // variables
	for cache := range c.pol.Caches() {
		if cache.Private {
			continue
		}
		known[cache.Variable] = true
		dir := cache.Dir
		if value := c.host.getenv(cache.Variable); filepath.IsAbs(value) {
			dir = rules.Path{Text: value}
		}
		path, ok := c.absolute(dir)
		if !ok || !c.isDir(path) {
			c.makePrivate(cache)
			continue
		}
		c.plan.Env = append(c.plan.Env, cache.Variable+"="+path)
		if err := c.grant(rules.Grant{Path: dir, Access: Write, By: rules.ByToolchain, From: cache.From}); err != nil {
			return err
		}
	}
	c.privateCaches(known)
	return nil
}

// privateCaches plans those that are private in any case, for toolchains of which no
// profile is in use: no other cache has the variable, no rule lets it be written.
func (c *compiler) privateCaches(known map[string]bool) {
	for cache := range c.pol.Caches() {
		path, ok := c.absolute(cache.Dir)
		if cache.Private && !known[cache.Variable] && (!ok || c.access(path)&Write == 0) {
			c.makePrivate(cache)
		}
	}
}

func (c *compiler) makePrivate(cache rules.Cache) {
	c.plan.Private = append(c.plan.Private, Private{Variable: cache.Variable, Name: strings.ToLower(cache.Variable)})
}

// unixPaths grants the host's sockets that the rules name.
func (c *compiler) unixPaths() error {
	for _, g := range c.pol.Network().Unix {
		path, ok := c.absolute(g.Path)
		real, exists, err := c.view.real(path)
		if ok && err == nil && exists && c.view.lstat(real).mode&fs.ModeSocket == 0 {
			return &Problem{At: g.From, What: fmt.Sprintf("%q is no socket", g.Path.Text), Hint: "network.unix names sockets of programs outside; those made inside need no rule"}
		}
		if err := c.grant(rules.Grant{Path: g.Path, Access: Read, From: g.From}); err != nil {
			return err
		}
		if i := c.plan.find(c.view, real); exists && i >= 0 {
			c.plan.grants[i].Unix = true
			c.plan.Unix = append(c.plan.Unix, real)
		}
	}
	return nil
}

// isDir tells whether path is, or leads to, a directory.
func (c *compiler) isDir(path string) bool {
	real, exists, err := c.view.real(path)
	return err == nil && exists && c.view.lstat(real).mode.IsDir()
}

// sort puts outer grants before inner ones.
func (c *compiler) sort() error {
	slices.SortFunc(c.plan.grants, func(a, b Grant) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

func (c *compiler) grant(g rules.Grant) error {
	path, ok := c.absolute(g.Path)
	if !ok {
		if g.Path.Optional || g.Create {
			c.missing(g.Path.Text, g.From)
			return nil
		}
		return &Problem{
			At: g.From, What: fmt.Sprintf("%q: the variable is not set", g.Path.Text),
			Hint: "set it, give a fallback with ${NAME:-path}, or end the path with ?",
		}
	}
	real, exists, err := c.view.real(path)
	switch {
	case err != nil && g.Path.Optional, err == nil && !exists && g.Path.Optional:
		c.missing(g.Path.Text, g.From)
		if err == nil && g.Access&Exec != 0 {
			c.absentExec = append(c.absentExec, written{real: real, at: g.From, text: g.Path.Text})
		}
		return nil
	case err != nil:
		return &Problem{At: g.From, What: fmt.Sprintf("%q: %v", g.Path.Text, Cause(err))}
	case !exists && !g.Create:
		return &Problem{
			At: g.From, What: fmt.Sprintf("%q does not exist", path),
			Hint: `end the path with "?" if it may be absent`,
		}
	}
	c.written = append(c.written, written{path: path, real: real, at: g.From, text: g.Path.Text, access: g.Access})
	return c.record(real, exists, g)
}

// record adds the grant to the one that is already on this inode, if any.
func (c *compiler) record(real string, exists bool, g rules.Grant) error {
	use := Use{Access: g.Access, Text: g.Path.Text, By: g.By, At: g.From}
	grant := Grant{Path: real, Dir: true, Create: g.Create && !exists}
	if exists {
		n := c.view.lstat(real)
		if n.err != nil {
			return &Problem{At: g.From, What: fmt.Sprintf("%q: %v", g.Path.Text, Cause(n.err))}
		}
		grant.ID, grant.Dir = n.id, n.mode.IsDir()
		if what := unfit(n.mode, g); what != "" {
			return &Problem{At: g.From, What: fmt.Sprintf("%q %s", real, what)}
		}
	}
	if i := c.plan.find(c.view, real); i >= 0 {
		c.plan.grants[i].Access |= g.Access | Read
		c.plan.grants[i].From = append(c.plan.grants[i].From, use)
		return nil
	}
	grant.Access, grant.From = g.Access|Read, []Use{use}
	c.plan.grants = append(c.plan.grants, grant)
	return nil
}

// unfit says why a file of this type can't have the access.
func unfit(m fs.FileMode, g rules.Grant) string {
	switch {
	case g.Create && !m.IsDir():
		return "is not a directory"
	case m&fs.ModeDevice != 0 && m&fs.ModeCharDevice == 0:
		return "is a block device: a whole file system can't be granted through its disk"
	case g.Access&Exec != 0 && !m.IsDir() && !m.IsRegular():
		return "is no file or directory that could be executed"
	}
	return ""
}

func (c *compiler) missing(text string, at Origin) {
	c.plan.Missing = append(c.plan.Missing, Missing{Text: text, At: at})
}

// planted refuses a grant that goes through a symbolic link which the jail
// could have put there: an earlier run would choose what this one is granted.
// Where it leads into a tree that is writable anyway, nothing is won.
func (c *compiler) planted() error {
	writable := func(dir string) bool { return c.access(dir)&Write != 0 || c.writtenElsewhere(dir) }
	var direct []string
	links := map[int]string{}
	for i, w := range c.written {
		if w.path != w.real {
			links[i] = c.firstLink(w.path, writable)
		}
		if links[i] == "" && w.access&Write != 0 {
			direct = append(direct, w.real)
		}
	}
	for i, w := range c.written {
		won := !slices.ContainsFunc(direct, func(dir string) bool { return within(w.real, dir) })
		if links[i] != "" && won {
			return &Problem{
				At:   w.at,
				What: fmt.Sprintf("%q leads to %q through the symbolic link %q, which %s may write", w.text, w.real, links[i], c.who(links[i])),
				Hint: fmt.Sprintf("write %q if that is what you mean", w.real),
			}
		}
	}
	return nil
}

// writtenElsewhere tells whether a jail with another profile may write in a
// directory: what it left there is as little to be followed. Only the user's own
// directories are asked about, which spares most starts the reading of profiles.
func (c *compiler) writtenElsewhere(dir string) bool {
	home, _, _ := c.view.real(c.host.Home)
	if !ownedBy(dir, c.host.UID) || c.host.UID == 0 && !within(dir, home) {
		return false
	}
	if c.elsewhere == nil {
		c.elsewhere = []string{}
		for _, p := range rules.Written() {
			if path, ok := c.absolute(p); ok {
				real, _, _ := c.view.real(path)
				c.elsewhere = append(c.elsewhere, path, real)
			}
		}
	}
	return slices.ContainsFunc(c.elsewhere, func(w string) bool { return w != "" && within(dir, w) })
}

// who may write the directory of a link.
func (c *compiler) who(link string) string {
	if c.access(filepath.Dir(link))&Write != 0 {
		return "the jail"
	}
	return "a jail with another profile"
}

// absent refuses an exec grant that is not there yet and lies where the jail may
// write: this run would make what the next one executes.
func (c *compiler) absent() error {
	for _, w := range c.absentExec {
		if a, why := c.plan.explain(c.view, w.real); a&Write != 0 {
			u := rule(why, Write)
			return &Problem{
				At:   w.at,
				What: fmt.Sprintf("%q may be executed but does not exist, and the jail could make it (%s: %q)", w.text, u.At, u.Text),
				Hint: "make it first, or drop the rule",
			}
		}
	}
	return nil
}

// firstLink returns the first link in a directory that is writable, of those
// that were followed when path was resolved. It does not look again: what is
// there now need not be what the grant was made of.
func (c *compiler) firstLink(path string, writable func(dir string) bool) string {
	for _, link := range c.view.resolve(path, 0).links {
		if writable(filepath.Dir(link)) {
			return link
		}
	}
	return ""
}

// own keeps jail's own directories out of every write grant, and the links on
// the way to them: who can write there can trust a rule file.
func (c *compiler) own() error {
	for _, dir := range c.host.Own {
		real, _, err := c.view.real(dir)
		if err != nil {
			return &Problem{What: fmt.Sprintf("%q, where jail keeps its own files: %s", dir, Cause(err))}
		}
		where := real
		if link := c.firstLink(dir, func(d string) bool { return c.access(d)&Write != 0 }); link != "" {
			where = filepath.Dir(link)
		}
		theirs := c.view.pieces(c.mounts, real, 0)
		for _, g := range c.trees(Write) {
			_, _, same := overlap(c.view.pieces(c.mounts, g.Path, 0), theirs)
			if same || within(where, g.Path) || within(g.Path, real) {
				return &Problem{
					At:   rule([]Grant{g}, Write).At,
					What: fmt.Sprintf("%q would let the jail write %q, where jail keeps its own files", g.Path, dir),
					Hint: "grant less",
				}
			}
		}
	}
	return nil
}

func (c *compiler) seeds() error {
	for s := range c.pol.Seeds() {
		from, ok1 := c.absolute(s.File)
		to, ok2 := c.absolute(s.To)
		if ok1 && ok2 {
			c.plan.Seeds = append(c.plan.Seeds, Seed{File: from, To: to})
		}
	}
	return nil
}

// Cause is what went wrong without the name of the call and the path, which our
// own words have.
func Cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
