package guard

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// history is where the branches and tags of the project's own repositories
// stand, by path of the reference.
type history map[string]ref

type ref struct {
	value string
	log   string // git's own log of the reference; empty if it keeps none
}

// maxRefs and maxRefText bound what is read of a repository's references.
const (
	maxRefs    = 500
	maxRefText = 1 << 20
)

// readHistory reads references as files: git is not run on what a jail wrote.
func readHistory(p plan.Plan) history {
	h := history{}
	for _, dir := range append(slices.Clone(p.Tree.Git), filepath.Join(p.Tree.Root, ".git")) {
		h.packed(dir)
		for _, kind := range []string{"heads", "tags"} {
			filepath.WalkDir(filepath.Join(dir, "refs", kind), func(path string, d fs.DirEntry, err error) error {
				if len(h) > maxRefs {
					return fs.SkipAll
				}
				if err == nil && d.Type().IsRegular() && !strings.HasSuffix(path, ".lock") {
					h.add(dir, path, strings.TrimSpace(readText(path)))
				}
				return nil
			})
		}
	}
	return h
}

// packed reads what `git pack-refs` has put together; a file of its own, read
// later, counts more.
func (h history) packed(dir string) {
	lines := bufio.NewScanner(strings.NewReader(readText(filepath.Join(dir, "packed-refs"))))
	for lines.Scan() && len(h) <= maxRefs {
		value, name, ok := strings.Cut(lines.Text(), " ")
		if ok && (strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/")) {
			h.add(dir, filepath.Join(dir, name), value)
		}
	}
}

func (h history) add(dir, path, value string) {
	name, _ := filepath.Rel(dir, path)
	h[path] = ref{value: value, log: readText(filepath.Join(dir, "logs", name))}
}

// rewritten lists the references that moved while git's log of them does not
// lead from where they stood to where they stand: somebody wrote the file. It is
// a hint and no proof: who can write the file can write the log.
func (h history) rewritten(after history) []string {
	var out []string
	for path, was := range h {
		is, there := after[path]
		if there && is.value != was.value && !was.ledTo(is) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// ledTo follows the lines that the log has got since. A tag has no log: that it
// moved is enough.
func (r ref) ledTo(is ref) bool {
	added, grown := strings.CutPrefix(is.log, r.log)
	if !grown { // git gc has cut it
		added = is.log
	}
	at := r.value
	for line := range strings.Lines(added) {
		if f := strings.Fields(line); len(f) > 1 && (f[0] == at || !grown) {
			at = f[1]
		}
	}
	return at == is.value
}

// readText is a regular file's text, or nothing: the jail may have put anything
// there.
func readText(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(f, maxRefText))
	return string(text)
}
