// Command demo plays a model for opencode inside jail and prints what the model
// was told: honest work, and attempts that the kernel refuses. It fails when the
// work does, and when an attempt is not refused.
//
//	go run ./examples/demo JAIL AGENTS [FLAG...]
//
// AGENTS is a directory that integration_test/agents.sh has filled; the flags are
// jail's. Nothing but loopback is needed.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"jail/internal/fakemodel"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: demo JAIL AGENTS [FLAG...]")
		os.Exit(2)
	}
	if err := demo(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// step is what the model has the agent do once.
type step struct {
	call    fakemodel.Call
	refused bool // by the kernel
}

func steps(project string) []step {
	greeting := filepath.Join(project, "greeting.txt")
	return []step{
		{fakemodel.Write(greeting, "hello\n"), false},
		{fakemodel.Edit(greeting, "hello", "good day"), false},
		{fakemodel.Bash("git add -A && git commit -qm greet && git log --oneline -1 --format=%s"), false},
		{fakemodel.Bash("cat ~/.ssh/id_demo"), true},
		{fakemodel.Bash("echo 'echo evil' >> ~/.local/bin/tool"), true},
		{fakemodel.Bash("echo evil >> ~/.bashrc"), true},
		{fakemodel.Bash("unshare -U true"), true},
	}
}

func demo(jail, agents string, flags []string) error {
	home := os.Getenv("HOME")
	project, err := os.Getwd()
	if err != nil {
		return err
	}
	var script fakemodel.Script
	for _, s := range steps(project) {
		script.Steps = append(script.Steps, fakemodel.Step{s.call})
	}
	model, err := fakemodel.Start(script)
	if err != nil {
		return err
	}
	defer model.Close()
	if err := configure(home, model.URL); err != nil {
		return err
	}
	modules := filepath.Join(agents, "node_modules")
	agent := []string{"--exec", modules, "--", filepath.Join(modules, ".bin", "opencode"), "run", "do the scripted steps"}
	cmd := exec.Command(jail, append(flags, agent...)...)
	// What opencode would look up elsewhere fails at once: nobody listens there.
	cmd.Env = append(os.Environ(), "OPENCODE_DISABLE_MODELS_FETCH=1",
		"HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost")
	out, err := cmd.CombinedOutput()
	if !model.Done() {
		return fmt.Errorf("opencode did not finish: %v\n%s", err, out)
	}
	return errors.Join(err, report(model.Results(), steps(project)))
}

// report prints each tool call and the first line of what came back, and tells
// whether it is what was to come.
func report(results []fakemodel.Result, steps []step) (err error) {
	if len(results) != len(steps) {
		err = fmt.Errorf("%d results of %d steps", len(results), len(steps))
	}
	for _, r := range results {
		first, _, _ := strings.Cut(strings.TrimSpace(r.Text), "\n")
		fmt.Printf("  %-6s %s\n", r.Tool, first)
		if want := steps[r.Step].refused; isRefusal(r.Text) != want {
			err = errors.Join(err, fmt.Errorf("step %d: refused is %v, not %v: %s", r.Step+1, !want, want, r.Text))
		}
	}
	return err
}

// isRefusal knows the words of EACCES, EPERM, EROFS, and ENOENT: what no rule
// names may not even be there.
func isRefusal(text string) bool {
	return slices.ContainsFunc([]string{"ermission denied", "not permitted", "Read-only file system", "No such file"}, func(words string) bool {
		return strings.Contains(text, words)
	})
}

// configure tells opencode where its model is.
func configure(home, url string) error {
	config := map[string]any{
		"model": "demo/demo", "small_model": "demo/demo", "autoupdate": false, "share": "disabled",
		"permission": map[string]string{"*": "allow", "external_directory": "allow"},
		"provider": map[string]any{"demo": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "demo",
			"options": map[string]string{"baseURL": url, "apiKey": "none"},
			"models":  map[string]any{"demo": map[string]any{"name": "demo", "tool_call": true, "limit": map[string]int{"context": 100000, "output": 8000}}},
		}},
	}
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	dir := filepath.Join(home, ".config", "opencode")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "opencode.json"), text, 0o600)
}
