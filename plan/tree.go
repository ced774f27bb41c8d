package plan

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"jail/rules"
)

// Tree is the project: the git top level of the working directory, or the
// working directory itself.
type Tree struct {
	Root string // real path
	// Git lists directories outside Root in which the project's git keeps its
	// state (of a worktree or a submodule), proved to belong to the project.
	Git []string
	// Notes say what was not taken for granted, and why.
	Notes []string
}

// FindTree looks upwards from cwd (a real path) for a .git that belongs to the
// user. What a .git file says is believed only if the directory it names is a
// git directory of the user and itself points back to this tree: the file may
// have been written by an earlier run that hoped for a grant.
func FindTree(cwd string, uid int) Tree {
	for dir := cwd; ; dir = filepath.Dir(dir) {
		dot := filepath.Join(dir, ".git")
		if fi, err := os.Lstat(dot); err == nil && ownedBy(dot, uid) && ownedBy(dir, uid) {
			t := Tree{Root: dir}
			switch {
			case fi.IsDir():
				t.alternates(dot)
				return t
			case fi.Mode().IsRegular():
				t.linked(dot, uid)
				return t
			default: // going on upwards would widen the tree
				t.note("%s is a link and may lead anywhere: not followed", dot)
				return t
			}
		}
		if dir == "/" {
			return Tree{Root: cwd}
		}
	}
}

// linked follows a .git file.
func (t *Tree) linked(dot string, uid int) {
	gitdir, ok := pointer(dot, "gitdir: ", t.Root)
	if !ok {
		t.note("%s is no git file", dot)
		return
	}
	if within(gitdir, t.Root) {
		t.alternates(gitdir)
		return
	}
	common := gitdir
	var back string
	if main, isWorktree := strings.CutSuffix(filepath.Dir(gitdir), "/worktrees"); isWorktree {
		// A worktree's directory lies in the repository by construction;
		// what its commondir file claims need not be read.
		common = main
		back, _ = pointer(filepath.Join(gitdir, "gitdir"), "", gitdir)
		back = strings.TrimSuffix(back, "/.git")
	} else {
		back = configWorktree(gitdir)
	}
	switch {
	case back != t.Root:
		t.note("%s names %q, which does not point back here: not granted", dot, gitdir)
	case !isGitDir(common, uid) || !ownedBy(gitdir, uid):
		t.note("%s names %q, which is no git directory of yours: not granted", dot, common)
	default:
		t.Git = append(t.Git, common)
		t.alternates(common)
	}
}

// pointer reads a one-line file that names a path and makes the path real.
func pointer(file, prefix, base string) (string, bool) {
	text, err := readSmall(file)
	line, ok := strings.CutPrefix(strings.TrimRight(text, "\n"), prefix)
	if err != nil || !ok || line == "" || strings.ContainsAny(line, "\n\x00") {
		return "", false
	}
	if !filepath.IsAbs(line) {
		line = filepath.Join(base, line)
	}
	if filepath.Base(line) == ".git" && prefix == "" {
		// The way back names the .git file; only its directory is made real.
		dir, err := filepath.EvalSymlinks(filepath.Dir(line))
		return filepath.Join(dir, ".git"), err == nil
	}
	real, err := filepath.EvalSymlinks(line)
	return real, err == nil
}

// configWorktree is core.worktree of a submodule's git directory.
func configWorktree(gitdir string) string {
	text, err := readSmall(filepath.Join(gitdir, "config"))
	if err != nil {
		return ""
	}
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.ToLower(line)
		}
		key, value, ok := strings.Cut(line, "=")
		if ok && section == "[core]" && strings.EqualFold(strings.TrimSpace(key), "worktree") {
			path := strings.Trim(strings.TrimSpace(value), `"`)
			if !filepath.IsAbs(path) {
				path = filepath.Join(gitdir, path)
			}
			real, _ := filepath.EvalSymlinks(path)
			return real
		}
	}
	return ""
}

// isGitDir applies git's own test (setup.c, is_git_directory) and asks for the
// user's ownership. Directories that are links do not count.
func isGitDir(dir string, uid int) bool {
	for _, name := range []string{"objects", "refs"} {
		if fi, err := os.Lstat(filepath.Join(dir, name)); err != nil || !fi.IsDir() {
			return false
		}
	}
	fi, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil && fi.Mode().IsRegular() && ownedBy(dir, uid)
}

// alternates never win a grant: the file can be written inside.
func (t *Tree) alternates(gitdir string) {
	text, err := readSmall(filepath.Join(gitdir, "objects", "info", "alternates"))
	if err != nil {
		return
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); filepath.IsAbs(line) && !within(line, t.Root) {
			t.note("git objects in %q are not granted", line)
		}
	}
}

func (t *Tree) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// readSmall reads a regular file of at most 64 KiB.
func readSmall(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // never waits for a fifo
	if err != nil {
		return "", err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > 1<<16 {
		return "", fmt.Errorf("%s: not a small regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, 1<<16))
	return string(bytes.TrimSuffix(b, []byte("\n"))), err
}

// gitDirs grants the git directories outside the tree the access that the tree
// itself has.
func (c *compiler) gitDirs() error {
	a, why := c.plan.explain(c.view, c.host.Tree.Root)
	if a == 0 {
		return nil
	}
	for _, dir := range c.host.Tree.Git {
		g := rules.Grant{Path: rules.Path{Text: "git directory of the project"}, Access: a &^ Exec, From: rule(why, a).At}
		if err := c.record(dir, true, g); err != nil {
			return err
		}
	}
	return nil
}
