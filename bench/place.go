package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// place is a home of its own with a Go project in it, so that what is measured does not depend on
// whose machine this is.
type place struct {
	root    string
	project string
	env     []string
	leftOut map[string]bool // contenders that do not work here and have been named
}

// packages is how many packages the project has; each is compiled anew by every build.
const packages = 8

func newPlace() (place, error) {
	root, err := os.MkdirTemp("", "jail-bench-")
	if err != nil {
		return place{}, err
	}
	home := filepath.Join(root, "home")
	p := place{root: root, project: filepath.Join(home, "project"), leftOut: map[string]bool{}}
	p.env = []string{
		"HOME=" + home,
		"PATH=" + os.Getenv("PATH"),
		"LANG=C.UTF-8",
		"GOFLAGS=-buildvcs=false",
		"GOTOOLCHAIN=local",
		"GOPROXY=off",
		"GIT_CONFIG_NOSYSTEM=1",
	}
	if err := p.populate(); err != nil {
		os.RemoveAll(root)
		return place{}, err
	}
	return p, nil
}

func (p place) populate() error {
	if err := p.edit(0); err != nil {
		return err
	}
	if err := p.write("go.mod", "module project\n\ngo 1.26.0\n"); err != nil {
		return err
	}
	if err := p.write("main.go", mainSource()); err != nil {
		return err
	}
	if err := p.writeNode(); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"git", "init", "-q"},
		{"git", "config", "user.name", "bench"},
		{"git", "config", "user.email", "bench@localhost"},
		{"git", "add", "."},
		{"git", "commit", "-q", "-m", "project"},
	} {
		if out, err := p.command(argv).CombinedOutput(); err != nil {
			return fmt.Errorf("%q: %w: %s", argv, err, out)
		}
	}
	return nil
}

// edit changes every package, so that the next build has to compile them.
func (p place) edit(n int) error {
	for i := range packages {
		name := fmt.Sprintf("p%d", i)
		src := fmt.Sprintf("package %s\n\nimport \"fmt\"\n\nfunc Say() { fmt.Println(%d) }\n", name, n)
		if err := p.write(filepath.Join(name, name+".go"), src); err != nil {
			return err
		}
		test := fmt.Sprintf("package %s\n\nimport \"testing\"\n\nfunc TestSay(t *testing.T) { Say() }\n", name)
		if err := p.write(filepath.Join(name, name+"_test.go"), test); err != nil {
			return err
		}
	}
	return nil
}

// nodeTests is how many files node starts a process for each of.
const nodeTests = 40

func (p place) writeNode() error {
	if err := p.write("package.json", `{"name": "project", "version": "1.0.0", "private": true, "scripts": {"test": "node --test"}}`+"\n"); err != nil {
		return err
	}
	for i := range nodeTests {
		src := fmt.Sprintf("const test = require('node:test');\nconst assert = require('node:assert');\ntest('sum', () => assert.equal(%d + 1, %d));\n", i, i+1)
		if err := p.write(fmt.Sprintf("test/t%d.test.js", i), src); err != nil {
			return err
		}
	}
	return nil
}

// buildHello builds a program in the project.
func (p place) buildHello() error {
	if err := p.write("cmd/hello/main.go", "package main\n\nfunc main() {}\n"); err != nil {
		return err
	}
	if out, err := p.command([]string{"go", "build", "-o", "hello", "./cmd/hello"}).CombinedOutput(); err != nil {
		return fmt.Errorf("building hello: %w: %s", err, out)
	}
	return nil
}

func mainSource() string {
	imports, calls := "", ""
	for i := range packages {
		imports += fmt.Sprintf("import \"project/p%d\"\n", i)
		calls += fmt.Sprintf("\tp%d.Say()\n", i)
	}
	return "package main\n\n" + imports + "\nfunc main() {\n" + calls + "}\n"
}

func (p place) write(name, text string) error {
	name = filepath.Join(p.project, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// buildExec1 builds bench/exec1, statically, as jail is.
func (p place) buildExec1() (string, error) {
	file := filepath.Join(p.root, "exec1")
	cmd := exec.Command("go", "build", "-o", file, "-ldflags", "-s -w", "jail/bench/exec1")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building exec1: %w: %s", err, out)
	}
	return file, nil
}

// commandRules writes rule files that deny and that allow commands, and locks the
// allowed ones.
func (p place) commandRules(jail string) (denied, allowed string, err error) {
	denied, allowed = filepath.Join(p.root, "denied.toml"), filepath.Join(p.root, "allowed.toml")
	const list = `"true", "bash", "cat", "ls", "grep", "sed", "git", "cp", "mv", "rm", "mkdir", "head", "tail", "sort", "uniq", "wc", "find", "diff", "touch", "env"`
	for path, text := range map[string]string{denied: `deny = ["git"]`, allowed: "allow = [" + list + "]"} {
		if err := os.WriteFile(path, []byte("version = 1\n[commands]\n"+text+"\n"), 0o644); err != nil {
			return "", "", err
		}
	}
	cmd := exec.Command(jail, "lock", "--rules", allowed)
	cmd.Dir, cmd.Env = p.project, p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("jail lock: %w: %s", err, out)
	}
	return denied, allowed, nil
}
