package plan_test

import (
	"errors"
	"net"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
	"jail/rules"
)

// artifactWorld is a home with caches, an agent's state and a project.
func artifactWorld(t *testing.T) *world {
	w := newWorld(t)
	w.host.Env = append(w.host.Env, "GOROOT="+w.path("usr"))
	w.dirs("home/.cache/go-build", "home/go/pkg/mod", "home/.claude", "home/.cache/claude-cli-nodejs", "home/proj/sub", "home/other")
	return w
}

func (w *world) withProfiles(text string) (plan.Plan, error) {
	return w.compileAll(rules.Input{Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte("profiles = ['go', 'claude']\n" + text)}}})
}

// Artifacts write the project, caches and TMPDIR; the agent's own state is not
// even read, and what else the rules let the agent write is read only.
func TestArtifactGrants(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{
			"by default", "files = { write = ['.', '~/other', '/dev/null'], exec = ['${B}/usr'] }",
			[]string{
				"read+write /dev/null file", "read+write B/home/.cache/go-build", "read+write B/home/go/pkg", "read+write B/home/go/pkg/mod",
				"read B/home/other", "read+write B/home/proj", "read+exec B/usr",
			},
		},
		{
			"narrower", "files = { write = ['.', '~/other', '/dev/null'], exec = ['${B}/usr'] }\nartifact.write = ['sub', '~/other', 'absent?']",
			[]string{
				"read+write /dev/null file", "read B/home/.cache/go-build", "read B/home/go/pkg", "read B/home/go/pkg/mod",
				"read+write B/home/other", "read B/home/proj", "read+write B/home/proj/sub", "read+exec B/usr",
			},
		},
		{
			"nothing", "files.write = ['.']\nartifact.write = []",
			[]string{"read B/home/.cache/go-build", "read B/home/go/pkg", "read B/home/go/pkg/mod", "read B/home/proj", "read+exec B/usr"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := artifactWorld(t)
			p, err := w.withProfiles(tt.text)
			w.must(err)
			if d := cmp.Diff(tt.want, w.grants(p.ForArtifacts())); d != "" {
				t.Error(d)
			}
			for _, path := range []string{"home/.claude/credentials", "home/proj/sub/x", "home/.cache/go-build/x", "usr/bin/x", "home/other/x"} {
				if ours, theirs := p.Access(w.path(path)), p.ForArtifacts().Access(w.path(path)); theirs&^ours != 0 {
					t.Errorf("%s: artifacts have %s, the jail %s", path, theirs, ours)
				}
			}
			if a := p.Access(w.path("home/.claude/x")); a != plan.Read|plan.Write {
				t.Errorf("the agent has %s on its own state", a)
			}
			if a := p.ForArtifacts().Access(w.path("home/.claude/x")); a != 0 {
				t.Errorf("artifacts have %s on the agent's state", a)
			}
		})
	}
}

// What an agent's profile only reads may hold keys as well; the agent's own
// program is no secret.
func TestArtifactsWithoutAgentsFiles(t *testing.T) {
	w := artifactWorld(t)
	w.file("home/.aider.conf.yml", "openai-api-key: k")
	w.dirs("home/.aider", "home/.local/share/claude")
	p, err := w.compileAll(rules.Input{Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte("profiles = ['aider', 'claude']\nfiles.write = ['.']")}}})
	w.must(err)
	for path, want := range map[string][2]plan.Access{
		"home/.aider.conf.yml":         {plan.Read, 0},
		"home/.local/share/claude/bin": {plan.Read | plan.Exec, plan.Read | plan.Exec},
		"home/proj/x":                  {plan.Read | plan.Write, plan.Read | plan.Write},
	} {
		if got := [2]plan.Access{p.Access(w.path(path)), p.ForArtifacts().Access(w.path(path))}; got != want {
			t.Errorf("%s: the agent has %s, artifacts %s", path, got[0], got[1])
		}
	}
}

// drops matches the patterns as the runner does, which has them.
func drops(p plan.Plan, name string) bool {
	return slices.ContainsFunc(p.Artifacts.Drop, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

func TestArtifactErrors(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"artifact.write = ['absent']", []string{`f:2: "absent" does not exist`, `end the path with "?" if it may be absent`}},
		{"artifact.write = [\n'~/other']", []string{`f:3: artifacts can't be given "~/other": the jail itself may not write it`, "grant it in [files] write, or remove it here"}},
	} {
		w := artifactWorld(t)
		_, err := w.withProfiles(tt.text)
		if d := cmp.Diff(tt.want, w.said(err)); d != "" {
			t.Errorf("%s: %s", tt.text, d)
		}
	}
}

func TestArtifactRules(t *testing.T) {
	w := artifactWorld(t)
	p := w.plan("files.write = ['.']\n[artifact]\ndeny = ['bin/**', '*.exe']\nnetwork = false\nenv.drop = ['*_TOKEN', 'KEY']\nlimits.cpu = 3")
	for path, want := range map[string]bool{"bin": true, "bin/a": true, "bin/a/b": true, "x.exe": true, "sub/x.exe": false, "binary": false} {
		if _, got := p.Artifacts.Denies(w.path("home/proj/" + path)); got != want {
			t.Errorf("%s: denied %t", path, got)
		}
	}
	for name, want := range map[string]bool{"GH_TOKEN": true, "KEY": true, "KEYS": false, "TOKEN": false, "PATH": false} {
		if got := drops(p, name); got != want {
			t.Errorf("%s: dropped %t", name, got)
		}
	}
	a := p.ForArtifacts()
	if !a.Network.Connect.Set || len(a.Network.Connect.List) > 0 || !a.Network.Bind.Set || p.Network.Connect.Set {
		t.Errorf("network: %+v, the agent's %+v", a.Network, p.Network)
	}
	if len(a.Limits) != 1 || a.Limits[0].Value != 3 || len(p.Limits) != 0 {
		t.Errorf("limits: %+v", a.Limits)
	}
}

// What only an agent's profile passes on is the agent's, whatever it is called.
func TestArtifactsWithoutAgentsVariables(t *testing.T) {
	w := artifactWorld(t)
	w.host.Env = append(w.host.Env, "ANTHROPIC_CUSTOM_HEADERS=secret", "GOFLAGS=-v", "LANG=C", "CLAUDE_X=1")
	p, err := w.withProfiles("env.pass = ['LANG', 'CLAUDE_X']")
	w.must(err)
	for name, want := range map[string]bool{"ANTHROPIC_CUSTOM_HEADERS": true, "GOFLAGS": false, "LANG": false, "CLAUDE_X": false} {
		if !slices.ContainsFunc(p.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
			t.Errorf("the agent does not get %s", name)
		}
		if got := drops(p, name); got != want {
			t.Errorf("%s: artifacts are without it: %t", name, got)
		}
	}
}

// Nobody needs a supervisor when there is nothing to seal, to say or to connect.
func TestSupervised(t *testing.T) {
	const off, allow = "artifact = { run = 'deny', libraries = 'deny' }\n", "commands.allow = ['sh']\nfiles.exec = ['${B}/usr']\n"
	for _, tt := range []struct {
		text   string
		abi    int
		mounts bool
		want   bool
		place  bool // for what is executed
	}{
		{"", 7, true, true, true},
		{"", 7, false, false, false},
		{off, 7, true, true, false},
		{off, 9, true, true, false}, // to tell
		{off, 9, false, false, false},
		{allow, 9, true, false, false},
		{allow, 7, true, true, false},
		{allow + "network.unix = 'any'", 7, true, false, false},
		{"artifact.run = 'deny'", 9, true, true, true},
		{"artifact.libraries = 'deny'", 9, true, true, true},
		{off + "[[guide]]\nmatch = 'git push'\nmessage = 'no'", 9, true, true, true},
	} {
		w := newWorld(t)
		programs(w)
		w.host.ABI, w.host.Mounts.OK = tt.abi, tt.mounts
		if p := w.plan(tt.text); p.Supervised() != tt.want || p.HasPlace() != tt.place {
			t.Errorf("%q, ABI %d, mounts %t: %t, %t", tt.text, tt.abi, tt.mounts, p.Supervised(), p.HasPlace())
		}
	}
}

func TestWithSeals(t *testing.T) {
	w := artifactWorld(t)
	p := w.plan("files.write = ['.']").WithSeals()
	if !slices.Contains(w.grants(p), "read+exec /run/jail") {
		t.Errorf("grants are %q", w.grants(p))
	}
	if a := p.Access(plan.SealsDir + "/x/lib"); a != plan.Read|plan.Exec {
		t.Errorf("seals have %s", a)
	}
}

// Unix sockets are kept inside by the first of Landlock, the supervisor and the
// filter that is there.
func TestUnixIsHeld(t *testing.T) {
	for _, tt := range []struct {
		abi    int
		mounts bool
		want   string
	}{{9, true, "landlock"}, {7, true, "supervisor"}, {7, false, "seccomp"}, {9, false, "landlock"}} {
		w := newWorld(t)
		w.host.ABI, w.host.Mounts.OK = tt.abi, tt.mounts
		p := w.plan("waive = ['mounts']")
		if tt.mounts {
			p = w.plan("")
		}
		for _, pr := range p.Promises {
			if pr.ID == "sockets" && (len(pr.By) != 1 || pr.By[0] != tt.want) {
				t.Errorf("ABI %d, mounts %t: held by %v", tt.abi, tt.mounts, pr.By)
			}
		}
	}
}

// A socket of the host that a rule names is granted, to be found and connected to.
func TestUnixPaths(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("unix", w.path("out/s"))
	w.must(err)
	defer l.Close()
	w.link("B/out/s", "out/link")
	p := w.plan("network.unix = ['${B}/out/link', '${B}/out/absent?']")
	if d := cmp.Diff([]string{"read B/out/s file"}, w.grants(p)); d != "" {
		t.Error(d)
	}
	if len(p.Unix) != 1 || p.Unix[0] != w.path("out/s") {
		t.Errorf("sockets: %q", p.Unix)
	}
	for text, want := range map[string][]string{
		"network.unix = ['${B}/out']":    {`f:2: "${B}/out" is no socket`, "network.unix names sockets of programs outside; those made inside need no rule"},
		"network.unix = ['${B}/absent']": {`f:2: "B/absent" does not exist`, `end the path with "?" if it may be absent`},
	} {
		_, err := w.compile(text)
		if d := cmp.Diff(want, w.said(err)); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

// Where seals are executed jail has to have a directory.
func TestRunIsJails(t *testing.T) {
	for _, access := range []string{"read", "write"} {
		_, err := newWorld(t).compile("files." + access + " = ['/run']")
		var problem *plan.Problem
		if !errors.As(err, &problem) || problem.At.File != "f" || !strings.Contains(problem.What, `"/run" can't be granted as a whole`) || problem.Hint == "" {
			t.Errorf("%s: %v", access, err)
		}
		w := newWorld(t)
		w.host.Mounts.OK = false
		w.plan("files." + access + " = ['/run']")
	}
}
