package plan

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// protectedInGit are the files of a git directory through which git runs
// commands or reads elsewhere on the host (gitrepository-layout(5)).
func protectedInGit() []string {
	return []string{
		"hooks", "config", "config.worktree", "commondir", "gitdir",
		"info/attributes", "info/grafts", "objects/info/alternates", "objects/info/http-alternates",
	}
}

// maxRepositoryDirs bounds the look for repositories inside the project: what is
// deeper than that many directories, breadth first, is not found and said so.
const maxRepositoryDirs = 1500

// repositories carves out, in every git directory of the project, what is
// protected in its own: a rule for ".git/config" speaks of all of them.
func (c *compiler) repositories() {
	root := c.host.Tree.Root
	if c.access(root)&Write == 0 {
		return
	}
	dots, whole := Repositories(root)
	c.plan.Repositories = dots // the report at exit asks what is new, whatever the rules protect
	at, asked := c.gitRule()
	if !asked {
		return
	}
	dirs := slices.Clone(c.host.Tree.Git)
	if !whole {
		c.plan.Tree.Notes = append(c.plan.Tree.Notes, fmt.Sprintf("repositories inside the project are looked for in its first %d directories only", maxRepositoryDirs))
	}
	for _, dot := range dots {
		n := c.view.lstat(dot)
		switch {
		case n.mode.IsDir():
			dirs = append(dirs, dot)
		case n.mode.IsRegular(): // of a submodule or worktree: where git looks next
			c.plan.Carves = append(c.plan.Carves, Carve{Path: dot, At: at, Reached: c.reached(dot)})
		}
	}
	for _, dir := range dirs {
		for _, gitdir := range append(inner(dir), dir) {
			for _, name := range protectedInGit() {
				// git rewrites the config of a submodule at each update.
				isCopy := name == "config" && strings.Contains(strings.TrimPrefix(gitdir, dir), "/modules/")
				c.addCarve(Carve{Path: filepath.Join(gitdir, name), At: at, Copy: isCopy})
			}
		}
	}
}

// gitRule is where the rules ask for .git/config to be protected.
func (c *compiler) gitRule() (Origin, bool) {
	for cv := range c.pol.Carves() {
		if cv.Path.Text == ".git/config" && !cv.Path.Flag && !cv.Hide {
			return cv.From, true
		}
	}
	return Origin{}, false
}

// addCarve adds a carve-out for a path that jail has found itself, unless a rule
// named it already.
func (c *compiler) addCarve(out Carve) {
	for _, have := range c.plan.Carves {
		if have.Path == out.Path {
			return
		}
	}
	real, exists, err := c.view.real(out.Path)
	if err != nil || !exists || real != out.Path {
		return
	}
	out.Reached = c.reached(real)
	c.plan.Carves = append(c.plan.Carves, out)
}

// Repositories lists, breadth first, what is called .git below root, and every
// bare repository: git takes a directory for one by its content alone. Installed
// packages and build output are passed over. whole is false when there were too
// many directories to look into.
func Repositories(root string) (found []string, whole bool) {
	skip := []string{"node_modules", "target", ".venv", "venv", "__pycache__", ".git", ".tox"}
	queue := []string{root}
	for n := 0; len(queue) > 0; n++ {
		if n == maxRepositoryDirs {
			return found, false
		}
		dir := queue[0]
		queue = queue[1:]
		entries, _ := os.ReadDir(dir)
		if dir != root && isBare(entries) {
			found = append(found, dir)
			continue
		}
		for _, e := range entries {
			path := dir + "/" + e.Name()
			switch {
			case e.Name() == ".git" && e.Type()&fs.ModeSymlink == 0:
				found = append(found, path)
			case e.IsDir() && !slices.Contains(skip, e.Name()):
				queue = append(queue, path)
			}
		}
	}
	return found, true
}

// isBare is git's own test (setup.c, is_git_directory).
func isBare(entries []fs.DirEntry) bool {
	n := 0
	for _, e := range entries {
		if slices.Contains([]string{"HEAD", "objects", "refs"}, e.Name()) {
			n++
		}
	}
	return n == 3
}

// inner lists the git directories inside a git directory: of worktrees and of
// submodules, which may have their own.
func inner(dir string) []string {
	var out []string
	trees, _ := os.ReadDir(filepath.Join(dir, "worktrees"))
	for _, e := range trees {
		if e.IsDir() {
			path := filepath.Join(dir, "worktrees", e.Name())
			out = append(append(out, path), modules(path)...)
		}
	}
	return append(out, modules(dir)...)
}

// modules lists the git directories of submodules. The name of a submodule is a
// path and may hold any word: only in a git directory are objects objects.
func modules(dir string) []string {
	var out []string
	var walk func(dir string, isGit bool)
	walk = func(dir string, isGit bool) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if !e.IsDir() || isGit && slices.Contains([]string{"objects", "refs", "logs", "hooks"}, e.Name()) {
				continue
			}
			path := filepath.Join(dir, e.Name())
			_, err := os.Lstat(filepath.Join(path, "HEAD"))
			if err == nil {
				out = append(out, path)
			}
			walk(path, err == nil)
		}
	}
	walk(filepath.Join(dir, "modules"), false)
	return out
}
