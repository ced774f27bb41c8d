package integration_test

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/internal/fakemodel"
	"jail/internal/testenv"
)

// The model that TestOpencode plays is up to no good, between two pieces of
// honest work. It is played twice: without jail each attempt must succeed, or
// its refusal in the jail would prove nothing.
func TestOpencode(t *testing.T) {
	evLong(t)
	opencode := findOpencode(t)
	testenv.Need(t, "userns", exec.Command("unshare", "-U", "true").Run())

	t.Run("control", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, opencode)
		s.play(t)
		s.checkResults(t, func(a act) (want, not string) { return a.free, "" })
		s.checkWork(t)
		if d := cmp.Diff(s.before, s.outside(t)); d == "" || s.calls.Load() == 0 {
			t.Errorf("the attempts left no mark: %d connections, outside%s", s.calls.Load(), d)
		}
		if !strings.Contains(s.told(), s.SecretText) {
			t.Error("the secret did not reach the model")
		}
	})

	t.Run("jail", func(t *testing.T) {
		t.Parallel()
		modules := filepath.Dir(filepath.Dir(opencode))
		s := newStage(t, opencode)
		rules := filepath.Join(s.Home, "rules.toml")
		s.WriteFile(t, rules, "version = 1\ncommands.deny = [\"factor\"]\n")
		s.play(t, testenv.JailBin(t), "--waive", "mounts", "--exec", modules, "--rules", rules, "--")
		s.checkResults(t, func(a act) (want, not string) { return a.jailed, a.free })
		s.checkWork(t)
		if d := cmp.Diff(s.before, s.outside(t)); d != "" {
			t.Errorf("changed outside: %s", d)
		}
		if n := s.calls.Load(); n != 0 {
			t.Errorf("%d connections to a socket outside", n)
		}
		if strings.Contains(s.told()+s.output, s.SecretText) {
			t.Error("the secret reached the model")
		}
	})
}

// findOpencode returns the opencode that agents.sh installed.
func findOpencode(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("JAIL_TEST_AGENTS")
	path := filepath.Join(dir, "node_modules", ".bin", "opencode")
	_, err := os.Stat(path)
	if dir == "" {
		err = fmt.Errorf("JAIL_TEST_AGENTS is not set; integration_test/agents.sh installs agents")
	}
	testenv.Need(t, "agents", err)
	return path
}

// An act is one thing that the model does, and what it must get to read about
// it, as regular expressions.
type act struct {
	call         fakemodel.Call
	free, jailed string
}

// denied is what a program prints when the kernel refuses; opencode's own tools
// write it in one word.
const denied = `(?i)permission ?denied|operation not permitted`

// A stage is a world with an agent, a model, and something to hurt.
type stage struct {
	*testenv.World
	opencode string
	acts     []act
	model    *fakemodel.Server
	calls    atomic.Int32 // connections to the socket outside
	socket   string
	before   map[string]string
	output   string
}

func newStage(t *testing.T, opencode string) *stage {
	t.Helper()
	s := &stage{World: testenv.NewWorld(t), opencode: opencode}
	s.WriteFile(t, filepath.Join(s.Home, ".bashrc"), "# untouched\n")
	s.listen(t)
	s.acts = slices.Concat(s.work(), s.attempts(), s.end())
	s.startModel(t)
	s.before = s.outside(t)
	return s
}

// work is what agents are for.
func (s *stage) work() []act {
	file := filepath.Join(s.Project, "greeting.txt")
	return []act{
		{fakemodel.Write(file, "hello\n"), `(?i)success`, `(?i)success`},
		{fakemodel.Edit(file, "hello", "good day"), `(?i)success`, `(?i)success`},
		both("git add greeting.txt && git commit -m greet", `greet`),
	}
}

// attempts are the acts that jail is for. None needs any privilege.
func (s *stage) attempts() []act {
	mark := filepath.Join(s.Outside, "mark")
	sh := func(command, free string) act { return act{fakemodel.Bash(command), free, denied} }
	return []act{
		sh(`cp "$(command -v git)" my-git && ./my-git --version`, `git version`),
		sh("cat "+s.Secret, s.SecretText),
		{fakemodel.Read(s.Secret), s.SecretText, denied},
		sh("echo mark > "+mark+" && echo written", `written`),
		{fakemodel.Write(mark+"2", "mark\n"), `(?i)success`, denied},
		sh("rm "+filepath.Join(s.Outside, "keep")+" && echo removed", `removed`),
		sh("echo mark >> ~/.bashrc && echo written", `written`),
		// A command that the rules deny.
		sh("echo 'factor 15' | bash", `15: 3 5`),
		sh("unshare -U echo in a namespace of its own", `(?m)^in a namespace`),
		// A client for unix sockets that every developer has.
		sh("git credential-cache --socket="+s.socket+" get", `password=mark`),
	}
}

// end shows that the agent and its shell still work after all that.
func (s *stage) end() []act {
	return []act{both("rm -f my-git; git status --short; echo the end", `^the end`)}
}

func both(command, want string) act { return act{fakemodel.Bash(command), want, want} }

// listen plays a credential daemon outside of the jail.
func (s *stage) listen(t *testing.T) {
	t.Helper()
	s.socket = filepath.Join(s.Outside, "socket")
	l, err := net.Listen("unix", s.socket)
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			s.calls.Add(1)
			_, _ = io.Copy(io.Discard, c) // until the whole question is there
			fmt.Fprint(c, "password=mark\n")
			_ = c.Close()
		}
	}()
}

func (s *stage) startModel(t *testing.T) {
	t.Helper()
	script := fakemodel.Script{Final: "All done."}
	for _, a := range s.acts {
		script.Steps = append(script.Steps, fakemodel.Step{a.call})
	}
	var err error
	s.model, err = fakemodel.Start(script)
	must(t, err)
	t.Cleanup(func() { _ = s.model.Close() })
	s.WriteFile(t, filepath.Join(s.Home, ".config/opencode/opencode.json"), config(t, s.model.URL))
}

// config lets opencode do everything without asking: jail is what says no.
func config(t *testing.T, url string) string {
	t.Helper()
	type object = map[string]any
	b, err := json.MarshalIndent(object{
		"model": "fake/fake", "small_model": "fake/fake",
		"autoupdate": false, "share": "disabled",
		"permission": object{"*": "allow", "external_directory": "allow", "doom_loop": "allow"},
		"provider": object{"fake": object{
			"npm": "@ai-sdk/openai-compatible", "options": object{"baseURL": url, "apiKey": "x"},
			"models": object{"fake": object{"tool_call": true, "limit": object{"context": 128000, "output": 8192}}},
		}},
	}, "", " ")
	must(t, err)
	return string(b)
}

// play runs the agent, behind a prefix, to the end of the script.
func (s *stage) play(t *testing.T, prefix ...string) {
	t.Helper()
	s.playIn(t, append(s.Env(), quiet()...), prefix...)
}

func (s *stage) playIn(t *testing.T, env []string, prefix ...string) {
	t.Helper()
	argv := append(prefix, s.opencode, "run", "Carry out the scripted steps.")
	r := s.RunIn(t, s.Project, env, argv...)
	s.output = r.Stdout + r.Stderr
	if r.Status != 0 || !s.model.Done() {
		t.Fatalf("%s: status %d; script done: %v\n%s\n%s", argv[0], r.Status, s.model.Done(), s.output, s.told())
	}
}

// quiet keeps opencode from looking for models, plugins and news on the
// network: the proxy does not exist.
func quiet() []string {
	const nowhere = "http://127.0.0.1:9"
	return []string{
		"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
		"HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "NO_PROXY=127.0.0.1",
	}
}

// checkResults holds what the model got to read against what it should, and
// should not if that is something else.
func (s *stage) checkResults(t *testing.T, should func(act) (want, not string)) {
	t.Helper()
	got := s.model.Results()
	if len(got) != len(s.acts) {
		t.Fatalf("%d results for %d acts", len(got), len(s.acts))
	}
	for i, a := range s.acts {
		want, not := should(a)
		if !found(want, got[i].Text) || not != "" && not != want && found(not, got[i].Text) {
			t.Errorf("%+v: result %q; want %q, not %q", a.call, got[i].Text, want, not)
		}
	}
}

func found(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

// checkWork looks at the repository from outside.
func (s *stage) checkWork(t *testing.T) {
	t.Helper()
	last := s.Git(t, "show", "--format=%s", "HEAD")
	for _, want := range []string{"greet\n", "+good day"} {
		if !strings.Contains(last, want) {
			t.Errorf("the last commit lacks %q:\n%s", want, last)
		}
	}
}

// outside is a picture of everything that the agent has no business with.
func (s *stage) outside(t *testing.T) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for _, root := range []string{s.Outside, filepath.Dir(s.Secret), filepath.Join(s.Home, ".bashrc")} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			seen[path], err = picture(path, e)
			return err
		})
		must(t, err)
	}
	return seen
}

// picture is one file's mode, time and, for a plain file, content.
func picture(path string, e fs.DirEntry) (string, error) {
	info, err := e.Info()
	if err != nil {
		return "", err
	}
	var content []byte
	if e.Type().IsRegular() {
		content, err = os.ReadFile(path)
	}
	return fmt.Sprintf("%v %v %q", info.Mode(), info.ModTime(), content), err
}

// told is all that the model got to read from its tools.
func (s *stage) told() string {
	var b strings.Builder
	for _, r := range s.model.Results() {
		fmt.Fprintf(&b, "[%d %s] %s\n", r.Step, r.Tool, r.Text)
	}
	return b.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
