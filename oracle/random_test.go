package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"jail/oracle"
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// odd are names that a program may not expect. Some can't stand in a rule.
func odd() []string {
	return []string{
		" sp ace", `q'"uote`, "st*r", "wh?t", "br[ack]et", "dol$lar", "#hash", "~tilde", "-dash", "new\nline", "\xff\xfe", "ünï",
		"..dots", `b\slash`, "{a,b}", ".hidden", "${B}", "q?", "\u202e", "=",
	}
}

// inRules tells whether a path can be named by a rule at all.
func inRules(path string) bool {
	return utf8.ValidString(path) && !strings.Contains(path, "${") && !strings.ContainsFunc(path, unicode.IsControl)
}

// random makes a tree and rules. Chance alone would mostly make what is refused as a
// plan, and hardly ever what is hard: so it is led a little.
func random(r *rand.Rand, count int) scenario {
	s := scenario{Mounts: r.IntN(3) > 0, Seed: r.Uint64(), Count: count}
	s.Nodes = append(s.Nodes, node{"dir", "proj/d", ""}, node{"dir", "out/d", ""})
	for i := range 6 + r.IntN(16) {
		s.add(r, i)
	}
	for range 1 + r.IntN(3) {
		s.rule(r, "files.read", s.named(r, ""))
		s.rule(r, "files.write", s.named(r, pick(r, []string{"proj", "proj", "proj", ""})))
		s.rule(r, "files.exec", s.named(r, pick(r, []string{"out", "out", "out", ""})))
	}
	for _, key := range []string{"files.protect", "files.hide"} {
		for range r.IntN(3) {
			s.carve(r, key)
		}
	}
	if s.Artifact = s.Mounts && r.IntN(4) == 0; s.Artifact && r.IntN(2) == 0 {
		s.rule(r, "artifact.write", slices.DeleteFunc(s.named(r, ""), func(path string) bool { return !s.under("files.write", path) }))
	}
	switch r.IntN(6) {
	case 0, 1:
		for range 1 + r.IntN(3) {
			s.command(r, "commands.deny")
		}
	case 2:
		s.command(r, "commands.allow")
	case 3:
		s.Rules = append(s.Rules, rule{"files.glob", pick(r, []string{"proj/**/*1*", "out/*/.hidden*", "proj/d/*"})})
	}
	return s
}

// add makes one more name.
func (s *scenario) add(r *rand.Rand, i int) {
	name := fmt.Sprintf("n%d", i)
	if r.IntN(4) == 0 {
		name = fmt.Sprintf("%s%d", pick(r, odd()), i)
	}
	dirs := s.paths("dir")
	n := node{Kind: "file", Path: filepath.Join(pick(r, dirs), name)}
	switch k := r.IntN(20); {
	case k < 7:
		n.Kind = "dir"
	case k < 10:
		n.Kind, n.To = "link", s.target(r, n.Path)
	case k < 13 && len(s.paths("file")) > 0:
		n.Kind, n.To = "hard", pick(r, s.paths("file"))
	case k == 13, k == 14 && r.IntN(3) == 0 && len(s.paths("file")) > 1:
		if k == 14 {
			dirs = s.paths("file")
		}
		n.Kind, n.To, n.Path = "bind", pick(r, dirs), pick(r, dirs)
		if within(n.To, n.Path) || within(n.Path, n.To) {
			return
		}
	}
	s.Nodes = append(s.Nodes, n)
}

// target is what a link says: another name, by way of a link too, or nothing.
func (s *scenario) target(r *rand.Rand, from string) string {
	to := pick(r, s.Nodes).Path
	switch r.IntN(5) {
	case 0:
		return "nowhere"
	case 1:
		rel, _ := filepath.Rel(filepath.Dir(from), to)
		return rel
	case 2:
		rel, _ := filepath.Rel(filepath.Dir(from), to)
		return "./" + rel + "/../" + filepath.Base(to)
	}
	return "${B}/" + to
}

// paths are the names of a kind that can be built upon: what a mount covers is
// not there any more.
func (s *scenario) paths(kind string) (out []string) {
	covered := func(path string) bool {
		for _, n := range s.Nodes {
			if n.Kind == "bind" && within(path, n.Path) {
				return true
			}
		}
		return false
	}
	for _, n := range s.Nodes {
		if n.Kind == kind && !covered(n.Path) {
			out = append(out, n.Path)
		}
	}
	return out
}

// named are the names below a directory that a rule can be about: most often no link,
// and nothing that a mount covers.
func (s *scenario) named(r *rand.Rand, below string) (out []string) {
	links := r.IntN(8) == 0
	for _, n := range s.Nodes {
		under := below == "" || n.Path != below && within(n.Path, below)
		covered := slices.ContainsFunc(s.Nodes, func(b node) bool { return b.Kind == "bind" && n.Path != b.Path && within(n.Path, b.Path) })
		if under && !covered && (links || n.Kind != "link") && inRules(n.Path) {
			out = append(out, n.Path)
		}
	}
	return out
}

// rule adds one about one of these names.
func (s *scenario) rule(r *rand.Rand, key string, among []string) (path string) {
	if len(among) == 0 {
		return ""
	}
	path = pick(r, among)
	s.Rules = append(s.Rules, rule{key, path})
	return path
}

// carve adds a carve-out, often with something in it that is given back.
func (s *scenario) carve(r *rand.Rand, key string) {
	path := s.rule(r, key, s.named(r, ""))
	for path != "" && r.IntN(2) == 0 {
		key := pick(r, []string{"files.read", "files.write", "files.write", "files.exec", "files.protect", "files.hide"})
		if in := s.rule(r, key, s.named(r, path)); r.IntN(2) == 0 {
			path = in
		}
	}
}

// command adds a rule about a file, most often one that may be executed. Rules have no
// blanks there.
func (s *scenario) command(r *rand.Rand, key string) {
	var files, executed []string
	for _, path := range s.named(r, "") {
		if strings.Contains(path, " ") || !slices.ContainsFunc(s.Nodes, func(n node) bool { return n.Path == path && n.isFile() }) {
			continue
		}
		files = append(files, path)
		if s.under("files.exec", path) {
			executed = append(executed, path)
		}
	}
	if len(executed) > 0 && r.IntN(4) > 0 {
		files = executed
	}
	s.rule(r, key, files)
}

// isFile tells whether a name may be a file's.
func (n node) isFile() bool {
	return n.Kind == "file" || n.Kind == "hard" || n.Kind == "link"
}

// randomOps chooses operations that succeed outside of any jail.
func randomOps(r *rand.Rand, all []entry, count int) (out []oracle.Op) {
	var files, dirs, entries []entry
	for _, e := range all {
		switch {
		case e.mode.IsRegular() || e.leads.IsRegular() && !e.broken:
			files = append(files, e)
		case e.leads.IsDir():
			dirs = append(dirs, e)
		}
		entries = append(entries, e)
	}
	for len(out) < count && len(files) > 0 {
		if o, ok := randomOp(r, files, dirs, entries); ok {
			out = append(out, o)
		}
	}
	return out
}

func randomOp(r *rand.Rand, files, dirs, entries []entry) (o oracle.Op, ok bool) {
	fresh := func() string { return filepath.Join(pick(r, dirs).path, pick(r, []string{"new", ".new", "n e*w"})) }
	switch r.IntN(5) {
	case 0:
		return oracle.Op{Do: "read", Path: pick(r, append(dirs, files...)).path}, true
	case 1, 2:
		return oracle.Op{Do: pick(r, oracle.Reads()), Path: pick(r, files).path}, true
	case 3:
		if o.Do, o.Path = pick(r, oracle.Makes()), fresh(); o.Do == "tmpfile" {
			o.Path = filepath.Dir(o.Path)
		}
		return o, true
	}
	e := pick(r, entries)
	o = oracle.Op{Do: pick(r, oracle.Moves()), Path: e.path, To: fresh()}
	switch o.Do {
	case "unlink":
		o.To = ""
		return o, !e.mode.IsDir()
	case "link":
		return o, !e.mode.IsDir()
	case "exchange":
		o.To = pick(r, entries).path
		if sameFile(o.Path, o.To) {
			return o, false
		}
	}
	// A directory can't be moved into itself, by whatever name.
	return o, o.Do == "rename" && !e.mode.IsDir() || apart(o)
}

// sameFile tells whether two names may be those of one file: rename(2) then does
// nothing, wherever they are. Of a file with something mounted on it nobody can tell.
func sameFile(x, y string) bool {
	var a, b unix.Statx_t
	const flags, mask = unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS
	if unix.Statx(unix.AT_FDCWD, x, flags, mask, &a) != nil || unix.Statx(unix.AT_FDCWD, y, flags, mask, &b) != nil {
		return false
	}
	covered := func(st unix.Statx_t) bool {
		return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 && st.Mode&unix.S_IFMT == unix.S_IFREG
	}
	return covered(a) || covered(b) || a.Dev_major == b.Dev_major && a.Dev_minor == b.Dev_minor && a.Ino == b.Ino
}

// apart tells whether neither path of an operation lies in the other.
func apart(o oracle.Op) bool {
	a, err := filepath.EvalSymlinks(filepath.Dir(o.Path))
	b, err2 := filepath.EvalSymlinks(filepath.Dir(o.To))
	a, b = filepath.Join(a, filepath.Base(o.Path)), filepath.Join(b, filepath.Base(o.To))
	return err == nil && err2 == nil && !within(a, b) && !within(b, a)
}
