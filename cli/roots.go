package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jail/plan"
)

// rootsFile lists, one on a line, the projects that lie inside another
// repository and in which a jail could remove .git: without it the next run would
// take the repository around for the project. It lies in jail's own directory,
// which no write grant may reach.
const rootsFile = "roots"

// enclosing is the repository around a project, if there is one.
func enclosing(root string, uid int) (string, bool) {
	if root == "/" {
		return "", false
	}
	if _, err := os.Lstat(filepath.Join(root, ".git")); err != nil {
		return "", false // no repository itself
	}
	t := plan.FindTree(filepath.Dir(root), uid)
	_, err := os.Lstat(filepath.Join(t.Root, ".git"))
	return t.Root, err == nil
}

// rememberRoot records a project whose .git this run may remove. What can't be
// recorded is said: the next run would not notice.
func (a app) rememberRoot(p plan.Plan) {
	root := p.Tree.Root
	outer, inside := enclosing(root, p.UID)
	if !inside || p.Access(root)&plan.Write == 0 || p.Holds(filepath.Join(root, ".git")) {
		return
	}
	dir := configDir(p.Home)
	if known, err := roots(dir); err == nil && slices.Contains(known, root) {
		return
	}
	if err := addRoot(dir, root); err != nil {
		fmt.Fprintf(a.stderr, "jail: note: %q can't be remembered in %q (%v): without its .git a later run would take %q for the project\n",
			root, dir, plan.Cause(err), outer)
	}
}

// lostRoot refuses a project that is the repository around a remembered one.
func lostRoot(h plan.Host) error {
	known, err := roots(configDir(h.Home))
	if err != nil {
		return err
	}
	for _, root := range known {
		in := h.Cwd == root || strings.HasPrefix(h.Cwd, root+"/")
		if _, err := os.Lstat(filepath.Join(root, ".git")); in && root != h.Tree.Root && errors.Is(err, fs.ErrNotExist) {
			return &plan.Problem{
				What: fmt.Sprintf("%q was a project, but its .git is gone, and %q around it would be the project now", root, h.Tree.Root),
				Hint: fmt.Sprintf("put its .git back, or remove its line from %q", filepath.Join(configDir(h.Home), rootsFile)),
			}
		}
	}
	return nil
}

func roots(dir string) ([]string, error) {
	path := filepath.Join(dir, rootsFile)
	text, err := readRules(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &plan.Problem{What: fmt.Sprintf("%q can't be read: %v", path, plan.Cause(err)), Hint: "jail keeps there which projects it knows: HOME has to be yours"}
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

// addRoot appends one line: one write, which two runs at once do not mix.
func addRoot(dir, root string) error {
	if strings.Contains(root, "\n") {
		return errors.New("its name has a line break")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, rootsFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(root + "\n")
	return errors.Join(err, f.Close())
}
