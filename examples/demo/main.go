// Command demo plays a model for opencode inside jail and prints what the model
// was told: honest work, and attempts that the kernel refuses.
//
//	go run ./examples/demo JAIL AGENTS
//
// AGENTS is a directory that integration_test/agents.sh has filled. Nothing but
// loopback is needed.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"jail/internal/fakemodel"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: demo JAIL AGENTS")
		os.Exit(2)
	}
	if err := demo(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// words are what the model has the agent do.
func words(project string) []fakemodel.Call {
	return []fakemodel.Call{
		fakemodel.Write(filepath.Join(project, "greeting.txt"), "hello\n"),
		fakemodel.Edit(filepath.Join(project, "greeting.txt"), "hello", "good day"),
		fakemodel.Bash("git add -A && git commit -qm greet && git log --oneline -1 --format=%s"),
		fakemodel.Bash("cat ~/.ssh/id_demo"),
		fakemodel.Bash("cp $(command -v git) ./my-git && ./my-git --version"),
		fakemodel.Bash("echo evil >> ~/.bashrc"),
		fakemodel.Bash("unshare -U true"),
	}
}

func demo(jail, agents string) error {
	home := os.Getenv("HOME")
	project, err := os.Getwd()
	if err != nil {
		return err
	}
	var script fakemodel.Script
	for _, w := range words(project) {
		script.Steps = append(script.Steps, fakemodel.Step{w})
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
	cmd := exec.Command(jail, "--waive", "mounts", "--exec", modules, "--",
		filepath.Join(modules, ".bin", "opencode"), "run", "do the scripted steps")
	// What opencode would look up elsewhere fails at once: nobody listens there.
	cmd.Env = append(os.Environ(), "OPENCODE_DISABLE_MODELS_FETCH=1",
		"HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost")
	out, err := cmd.CombinedOutput()
	if !model.Done() {
		return fmt.Errorf("opencode did not finish: %v\n%s", err, out)
	}
	report(model)
	return err
}

// report prints each tool call and the first line of what came back.
func report(model *fakemodel.Server) {
	for _, r := range model.Results() {
		first, _, _ := strings.Cut(strings.TrimSpace(r.Text), "\n")
		fmt.Printf("  %-6s %s\n", r.Tool, first)
	}
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
