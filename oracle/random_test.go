package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

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

// random makes a tree and rules.
func random(r *rand.Rand, count int) scenario {
	s := scenario{Mounts: r.IntN(3) > 0, Seed: r.Uint64(), Count: count}
	s.Nodes = append(s.Nodes, node{"dir", "proj/d", ""}, node{"dir", "out/d", ""})
	for i := range 6 + r.IntN(16) {
		s.add(r, i)
	}
	for _, key := range []string{"files.read", "files.write", "files.exec"} {
		for range 1 + r.IntN(3) {
			s.rule(r, key)
		}
	}
	for _, key := range []string{"files.protect", "files.hide"} {
		for range r.IntN(3) {
			s.rule(r, key)
		}
	}
	switch r.IntN(6) {
	case 0:
		s.rule(r, "commands.deny")
	case 1:
		s.rule(r, "commands.allow")
	case 2:
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
	case k == 13:
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

func (s *scenario) rule(r *rand.Rand, key string) {
	n := pick(r, s.Nodes)
	command := strings.HasPrefix(key, "commands.") // whose names have no blanks
	if inRules(n.Path) && !(command && strings.Contains(n.Path, " ")) {
		s.Rules = append(s.Rules, rule{key, n.Path})
	}
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
		if a, err := os.Lstat(o.Path); err == nil {
			if b, err := os.Lstat(o.To); err == nil && os.SameFile(a, b) {
				return o, false // rename(2) of two names of one file does nothing, wherever they are
			}
		}
	}
	// A directory can't be moved into itself, by whatever name.
	return o, o.Do == "rename" && !e.mode.IsDir() || apart(o)
}

// apart tells whether neither path of an operation lies in the other.
func apart(o oracle.Op) bool {
	a, err := filepath.EvalSymlinks(filepath.Dir(o.Path))
	b, err2 := filepath.EvalSymlinks(filepath.Dir(o.To))
	a, b = filepath.Join(a, filepath.Base(o.Path)), filepath.Join(b, filepath.Base(o.To))
	return err == nil && err2 == nil && !within(a, b) && !within(b, a)
}
