package integration_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jail/internal/testenv"
)

func example(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// needMounts skips what shows the mounts layer where namespaces can't be made.
func needMounts(t *testing.T) {
	t.Helper()
	flags := "-Urm"
	if os.Getuid() == 0 {
		flags = "-m"
	}
	testenv.Need(t, "userns", exec.Command("unshare", flags, "true").Run())
}

// tcpListener accepts connections until the test ends and returns its port.
func tcpListener(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestExampleAgent: what agent.toml says is what happens.
func TestExampleAgent(t *testing.T) {
	needMounts(t)
	w := testenv.NewWorld(t)
	guide := filepath.Join(w.Home, "docs", "guide")
	w.WriteFile(t, guide, "read me\n")
	w.WriteFile(t, filepath.Join(w.Home, "tools", "bin", "tool"), "#!/bin/sh\necho tool ran\n")
	if err := os.Chmod(filepath.Join(w.Home, "tools", "bin", "tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := append(w.Env(), "APP_MODE=test", "OTHER=x")
	r := w.RunIn(t, w.Project, env, testenv.JailBin(t), "--rules", example(t, "agent.toml"), "--", "sh", "-c",
		`cat ../docs/guide; ~/tools/bin/tool; echo "$CI $APP_MODE [$OTHER]"; echo x >> ../docs/guide; cat ../outside/keep; echo end`)
	want := "read me\ntool ran\n1 test []\nend\n"
	if r.Stdout != want || r.Status != 0 {
		t.Errorf("status %d, stdout %q, want %q; stderr %s", r.Status, r.Stdout, want, r.Stderr)
	}
	// The world lies below /tmp, which is private: what is not granted is not there.
	if !strings.Contains(r.Stderr, "guide: Read-only file system") || !strings.Contains(r.Stderr, "keep: No such file or directory") {
		t.Errorf("want two refusals, got %s", r.Stderr)
	}
	if text, err := os.ReadFile(guide); err != nil || string(text) != "read me\n" {
		t.Errorf("the guide is now %q (%v)", text, err)
	}
}

// TestExampleToolCall: the command line is one argument, the status its own, and
// there is no network.
func TestExampleToolCall(t *testing.T) {
	testenv.NeedProgram(t, "bash")
	needMounts(t)
	w := testenv.NewWorld(t)
	script := example(t, "tool-call.sh")
	env := append(w.Env(), "JAIL="+testenv.JailBin(t))
	run := func(command string) testenv.Result { return w.RunIn(t, w.Project, env, script, command) }

	if r := run(`echo "a  b" > f; cat f; exit 7`); r.Status != 7 || r.Stdout != "a  b\n" {
		t.Errorf("status %d, stdout %q, stderr %s", r.Status, r.Stdout, r.Stderr)
	}
	connect := `exec 3<>/dev/tcp/127.0.0.1/` + tcpListener(t)
	if r := w.Run(t, "bash", "-c", connect); r.Status != 0 {
		t.Fatalf("the control can't connect: %s", r.Stderr)
	}
	if r := run(connect); r.Status == 0 || !strings.Contains(r.Stderr, "Permission denied") {
		t.Errorf("connect: status %d, %s", r.Status, r.Stderr)
	}
	if r := run("ulimit -t"); r.Stdout != "600\n" {
		t.Errorf("cpu limit: %q", r.Stdout)
	}
}

// TestExampleCIStep: outputs can be set, later steps and tokens not reached.
func TestExampleCIStep(t *testing.T) {
	needMounts(t)
	w := testenv.NewWorld(t)
	commands := filepath.Join(w.Home, "runner")
	env := append(w.Env(), "JAIL="+testenv.JailBin(t), "ACTIONS_RUNTIME_TOKEN=t0ken", "GITHUB_ACTIONS=true")
	for _, name := range []string{"GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH"} {
		path := filepath.Join(commands, name)
		w.WriteFile(t, path, "")
		env = append(env, name+"="+path)
	}
	r := w.RunIn(t, w.Project, env, example(t, "ci-step.sh"), "sh", "-c",
		`echo a=1 >> "$GITHUB_OUTPUT"; echo done >> "$GITHUB_STEP_SUMMARY"; echo x >> `+commands+`/GITHUB_ENV; echo x >> `+commands+`/GITHUB_PATH
		echo "[$ACTIONS_RUNTIME_TOKEN$GITHUB_ENV] $GITHUB_ACTIONS"; exit 3`)
	if r.Status != 3 || r.Stdout != "[] true\n" {
		t.Errorf("status %d, stdout %q, stderr %s", r.Status, r.Stdout, r.Stderr)
	}
	for name, want := range map[string]string{"GITHUB_OUTPUT": "a=1\n", "GITHUB_STEP_SUMMARY": "done\n", "GITHUB_ENV": "", "GITHUB_PATH": ""} {
		got, err := os.ReadFile(filepath.Join(commands, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, want %q (%v)", name, got, want, err)
		}
	}
}

// TestDemo: what `make demo` shows is so, with an ordinary user's HOME.
func TestDemo(t *testing.T) {
	evLong(t)
	testenv.NeedProgram(t, "gcc")
	opencode := findOpencode(t)
	needMounts(t)
	cmd := exec.Command("sh", example(t, "demo.sh"))
	cmd.Env = append(os.Environ(), "JAIL="+testenv.JailBin(t), "AGENTS="+filepath.Join(opencode, "../../.."))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestExampleWorkflow: the workflow runs what the step script runs.
func TestExampleWorkflow(t *testing.T) {
	text, err := os.ReadFile(example(t, "ci-step.yml"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "jail --profile github-actions --"
	if !strings.Contains(string(text), "run: "+want) {
		t.Errorf("ci-step.yml does not run %q", want)
	}
	step, err := os.ReadFile(example(t, "ci-step.sh"))
	if err != nil || !strings.Contains(strings.ReplaceAll(string(step), `"${JAIL:-jail}"`, "jail"), "exec "+want) {
		t.Errorf("ci-step.sh does not run %q (%v)", want, err)
	}
	// What a checkout leaves in .git/config could be read by the step.
	if n := strings.Count(string(text), "persist-credentials: false"); n != strings.Count(string(text), "actions/checkout") {
		t.Errorf("%d checkouts keep no credentials", n)
	}
}
