package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Exit statuses for a command that is not started, as env(1) has them.
const (
	statusRefused  = 126
	statusNotFound = 127
)

// Command is the program that a name stands for.
type Command struct {
	Path  string
	Notes []string
}

// Find looks up a command as the shell would, but passes over directories that
// the jail may write: there an earlier run could have put a program of any name.
// One that is named by its path is taken, and sealed.
// The error of a command that may not be executed carries status 126, of one
// that is not there 127.
func (p Plan) Find(name string) (Command, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.Cwd, path)
		}
		if err := p.runnable(path, p.Seals()); err != nil {
			return Command{}, err
		}
		return Command{Path: path}, nil
	}
	return p.search(name)
}

func (p Plan) search(name string) (Command, error) {
	var c Command
	var refused error
	for _, dir := range filepath.SplitList(p.Path) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(p.Cwd, dir)
		}
		path := filepath.Join(dir, name)
		if unix.Access(path, unix.X_OK) != nil || isDir(path) {
			continue
		}
		err := p.runnable(path, false)
		if p.Access(dir)&Write != 0 {
			c.Notes = append(c.Notes, fmt.Sprintf("%s is passed over: the jail may write it", path))
		} else if err == nil {
			c.Path = path
			return c, nil
		}
		if refused == nil {
			refused = err
		}
	}
	if refused != nil {
		return Command{}, refused
	}
	hint := "it is looked up in PATH, as a shell does"
	if p.Path == "" {
		hint = "PATH is not set"
	}
	return Command{}, &Problem{
		What: fmt.Sprintf("%q: command not found", name), Hint: hint, Status: statusNotFound,
	}
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// runnable tells whether execve(2) of path would be allowed, and explains.
// written: what the jail may write will be sealed.
func (p Plan) runnable(path string, written bool) error {
	fi, err := os.Stat(path)
	if err != nil {
		return &Problem{
			What: fmt.Sprintf("%q: %s", path, Cause(err)),
			Hint: "give the path of a program, or a name to look up in PATH", Status: statusNotFound,
		}
	}
	if !fi.Mode().IsRegular() || unix.Access(path, unix.X_OK) != nil {
		return &Problem{
			What: fmt.Sprintf("%q is not an executable file", path),
			Hint: "chmod +x makes a program executable; a script runs as `bash SCRIPT`", Status: statusRefused,
		}
	}
	if err := p.mayExecute(path, written); err != nil {
		return err
	}
	interp := inspect(path).interpreter
	if interp == "" {
		return nil
	}
	if _, err := os.Stat(interp); err != nil {
		return &Problem{
			What: fmt.Sprintf("%q: its interpreter %q: %s", path, interp, Cause(err)),
			Hint: "mend the #! line, or install the interpreter", Status: statusNotFound,
		}
	}
	return p.mayExecute(interp, written)
}

func (p Plan) mayExecute(path string, written bool) error {
	a, why := p.Explain(path)
	switch {
	case a&Exec != 0, a&Write != 0 && written:
		return nil
	case a&Write != 0:
		w := rule(why, Write)
		hint := "what the jail may write it does not execute; a script runs as `bash SCRIPT`"
		return &Problem{
			What: fmt.Sprintf("%q may not be executed: it may be written (%s: %q)", path, w.At, w.Text),
			Hint: hint, Status: statusRefused,
		}
	}
	if err := p.refusedByCommand(path); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		dir = filepath.Dir(real)
	}
	return &Problem{
		What:   fmt.Sprintf("%q may not be executed: no exec rule reaches it", path),
		Hint:   fmt.Sprintf("--exec %s, or in a rule file: [files] exec = [%q]", dir, dir),
		Status: statusRefused,
	}
}
