package plan

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// piece is a part of one file system: every name under which a file can be
// reached lies in a piece of the same file system with a path above it.
type piece struct {
	major, minor int    // of the file system
	path         string // within it
	name         string // a path to it, for the person
	seen         string // where it is in the tree: name, or an overlay of it
}

func (p piece) overlaps(q piece) bool {
	return p.major == q.major && p.minor == q.minor && (within(p.path, q.path) || within(q.path, p.path))
}

// holds tells whether q lies inside of p, and in the tree where it lies in the file
// system.
func (p piece) holds(q piece) bool {
	return within(q.seen, p.seen) && filepath.Join(p.path, strings.TrimPrefix(q.seen, p.seen)) == q.path
}

// aliases refuses a write tree and an exec tree that show one directory through
// two mounts, or through an overlay and one of its layers.
func (c *compiler) aliases() error {
	mounts, execs := c.mounts, c.seenTrees(Exec)
	xs := make([][]piece, len(execs))
	for i, x := range execs {
		xs[i] = c.view.pieces(mounts, x.Path, 0)
		c.plan.Proof.saw(xs[i])
	}
	for _, w := range append(c.seenTrees(Write), c.temp()) {
		ws := c.view.pieces(mounts, w.Path, 0)
		c.plan.Proof.saw(ws)
		for i, x := range execs {
			if p, q, found := overlap(ws, xs[i]); found {
				return alias(p.name, q.name, "the same directory as",
					rule([]Grant{w}, Write), rule([]Grant{x}, Exec))
			}
		}
	}
	return nil
}

// seenTrees are the trees with an access, at all paths that give it: without the mounts
// layer every one where the directory is seen, since Landlock asks for the inode only,
// and what is mounted beneath is not the same at each.
func (c *compiler) seenTrees(a Access) (out []Grant) {
	for _, g := range c.trees(a) {
		paths := []string{g.Path}
		if !c.plan.Mounts {
			paths = c.namesOf(g.Path)
		}
		for _, g.Path = range paths {
			out = append(out, g)
		}
	}
	return out
}

// temp is where the private TMPDIR is made, as a tree that is written.
func (c *compiler) temp() Grant {
	return Grant{Path: c.plan.Temp, Access: Write, From: []Use{{Access: Write, Text: c.plan.Temp, At: Origin{File: "TMPDIR"}}}}
}

// readMounts reads the mounts of this process.
func (c *compiler) readMounts() error {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return &Problem{
			What: "the mounts of this process can't be read: " + err.Error(),
			Hint: "without /proc the W^X proof can't be made; mount /proc",
		}
	}
	c.mounts = mounts
	return nil
}

func overlap(ws, xs []piece) (w, x piece, found bool) {
	for _, w := range ws {
		for _, x := range xs {
			// One inside the other is no alias: the proof has looked at that. A mount may
			// show it in another place inside, too.
			if w.overlaps(x) && !w.holds(x) && !x.holds(w) {
				return w, x, true
			}
		}
	}
	return piece{}, piece{}, false
}

// pieces lists what can be seen beneath path: the part of the file system that
// covers it and every mount below. An overlay is also its layers, as far as
// their paths mean something here; depth bounds overlays on overlays.
func (v *view) pieces(mounts []*mountinfo.Info, path string, depth int) []piece {
	cover := covering(mounts, path)
	if cover == nil || depth > 8 {
		return nil
	}
	rel := strings.TrimPrefix(path, strings.TrimSuffix(cover.Mountpoint, "/"))
	out := []piece{newPiece(cover, rel, path)}
	out = append(out, v.layers(mounts, cover, rel, path, depth)...)
	for _, m := range mounts {
		if m != cover && m.Mountpoint != path && within(m.Mountpoint, path) {
			out = append(out, newPiece(m, "", m.Mountpoint))
			out = append(out, v.layers(mounts, m, "", m.Mountpoint, depth)...)
		}
	}
	return out
}

// namesOf lists the paths that lead to one file through the mounts of this process,
// the given one first.
func (c *compiler) namesOf(path string) []string {
	out := []string{path}
	is, ok := c.pieceOf(path)
	for _, m := range c.mounts {
		if !ok || !within(is.path, m.Root) || m.Major != is.major || m.Minor != is.minor {
			continue
		}
		other := filepath.Join(m.Mountpoint, strings.TrimPrefix(is.path, strings.TrimSuffix(m.Root, "/")))
		if n := c.view.lstat(other); other != path && n.err == nil && n.id == c.view.lstat(path).id {
			out = append(out, other)
		}
	}
	return out
}

// pieceOf is the part of a file system that lies at a path.
func (c *compiler) pieceOf(path string) (p piece, ok bool) {
	cover := covering(c.mounts, path)
	if cover == nil {
		return piece{}, false
	}
	return newPiece(cover, strings.TrimPrefix(path, strings.TrimSuffix(cover.Mountpoint, "/")), path), true
}

func newPiece(m *mountinfo.Info, rel, name string) piece {
	return piece{major: m.Major, minor: m.Minor, path: filepath.Join(m.Root, rel), name: name, seen: name}
}

// covering is the mount that path lies on: the deepest, and of several on one
// point the last.
func covering(mounts []*mountinfo.Info, path string) *mountinfo.Info {
	var best *mountinfo.Info
	for _, m := range mounts {
		if within(path, m.Mountpoint) && (best == nil || len(m.Mountpoint) >= len(best.Mountpoint)) {
			best = m
		}
	}
	return best
}

func (v *view) layers(mounts []*mountinfo.Info, m *mountinfo.Info, rel, seen string, depth int) []piece {
	if m.FSType != "overlay" {
		return nil
	}
	var out []piece
	for _, dir := range layerDirs(m.VFSOptions) {
		real, exists, err := v.real(filepath.Join("/", dir, m.Root, rel))
		if err == nil && exists && filepath.IsAbs(dir) {
			out = append(out, v.pieces(mounts, real, depth+1)...)
		}
	}
	for i := range out {
		out[i].seen = seen
	}
	return out
}

// layerDirs are the directories that an overlay was made of, from the options
// in mountinfo: octal escapes are the kernel's for that file, a backslash before
// a colon is overlayfs's own, and "lowerdir+" is what the new mount calls leave.
func layerDirs(options string) []string {
	var dirs []string
	for _, opt := range strings.Split(options, ",") {
		key, value, _ := strings.Cut(opt, "=")
		value = unescape(value)
		switch key {
		case "upperdir", "lowerdir+", "datadir+":
			dirs = append(dirs, value)
		case "lowerdir":
			const colon = "\x00"
			value = strings.ReplaceAll(value, `\:`, colon)
			for _, dir := range strings.Split(value, ":") {
				dirs = append(dirs, strings.ReplaceAll(dir, colon, ":"))
			}
		}
	}
	return dirs
}

// unescape undoes the octal escapes of mountinfo, such as \040 for a space.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
