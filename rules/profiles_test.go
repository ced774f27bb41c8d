package rules_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/rules"
)

// everything parses all profiles together.
func everything(t *testing.T) rules.Policy {
	t.Helper()
	p, err := rules.Parse(rules.Input{
		Sources: []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte("profiles = []")}},
		Flags:   rules.Flags{Profiles: rules.ProfileNames()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProfilesParse(t *testing.T) {
	for _, name := range rules.ProfileNames() {
		t.Run(name, func(t *testing.T) {
			if len(showProfile(t, name)) < 2 {
				t.Error("the profile says nothing")
			}
			text, _ := rules.ProfileText(name)
			if !strings.Contains(text, "\nversion = 1\n") && !strings.HasPrefix(text, "version = 1\n") && !regexp.MustCompile(`(?m)^version  = 1$`).MatchString(text) {
				t.Error("no version")
			}
			if !regexp.MustCompile(`(?m)^about +=`).MatchString(text) {
				t.Error("profile.about is missing")
			}
		})
	}
	if d := cmp.Diff(rules.ProfileNames(), slices.Sorted(slices.Values(everything(t).Profiles()))); d != "" {
		t.Error(d)
	}
}

// worlds are environments: no variable is set; each variable that a profile
// uses leads to a place of its own.
func worlds() map[string]func(string) string {
	return map[string]func(string) string{
		"bare": func(string) string { return "" },
		"moved": func(name string) string {
			if strings.HasPrefix(name, "XDG_") { // as people set them
				return map[string]string{
					"XDG_CONFIG_HOME": "/h/cfg", "XDG_DATA_HOME": "/h/data", "XDG_STATE_HOME": "/h/state", "XDG_CACHE_HOME": "/h/cache",
				}[name]
			}
			return "/h/env/" + name
		},
	}
}

type expanded struct {
	path   string
	access rules.Access
	at     string
}

func expand(t *testing.T, p rules.Policy, getenv func(string) string) (grants []expanded, hidden []string) {
	t.Helper()
	abs := func(q rules.Path) (string, bool) {
		s, ok := q.Expand("/h", getenv)
		if ok && !path.IsAbs(s) {
			s = path.Join("/h/project", s)
		}
		return path.Clean(s), ok && s != ""
	}
	for g := range p.Grants() {
		if s, ok := abs(g.Path); ok {
			grants = append(grants, expanded{s, g.Access, g.From.String() + " " + g.Path.Text})
		}
	}
	for c := range p.Carves() {
		if s, ok := abs(c.Path); ok && c.Hide {
			hidden = append(hidden, s)
		}
	}
	return grants, hidden
}

func beneath(a, b string) bool { return a == b || b == "/" || strings.HasPrefix(a, b+"/") }

// No two profiles let one path be written and executed, nor a path that holds
// or lies in the other.
func TestProfilesKeepWX(t *testing.T) {
	for name, getenv := range worlds() {
		grants, _ := expand(t, everything(t), getenv)
		for _, w := range grants {
			for _, x := range grants {
				if w.access == rules.Write && x.access == rules.Exec && (beneath(w.path, x.path) || beneath(x.path, w.path)) {
					t.Errorf("%s: %s is written (%s), %s executed (%s)", name, w.path, w.at, x.path, x.at)
				}
			}
		}
	}
}

// No profile reaches HOME or what holds it, a shared directory, or a secret; nor
// does a profile write into its own state's parent.
func TestProfilesReachNoSecret(t *testing.T) {
	for name, getenv := range worlds() {
		grants, hidden := expand(t, everything(t), getenv)
		if len(hidden) < 50 {
			t.Fatalf("the default profile hides %d paths only", len(hidden))
		}
		for _, g := range grants {
			for _, top := range []string{"/h", "/tmp", "/var/tmp", "/run/user", "/root", "/h/.config", "/h/.local", "/h/.local/share", "/h/.cache", "/h/cfg", "/h/data", "/h/cache"} {
				if beneath(top, g.path) && (g.path != "/h/.local/lib" && g.path != "/h/.local/bin") {
					t.Errorf("%s: %s holds %s (%s)", name, g.path, top, g.at)
				}
			}
			for _, h := range hidden {
				if beneath(g.path, h) || beneath(h, g.path) && g.path != "/etc" { // shadow is kept by its mode
					t.Errorf("%s: %s (%s) reaches the secret %s", name, g.path, g.at, h)
				}
			}
		}
	}
}

// The keys of a model are an agent's own; nothing else that looks like a secret
// is passed on.
func TestProfilesPassNoSecret(t *testing.T) {
	allowed := map[string][]string{
		"aider":    {"ANTHROPIC_*", "OPENAI_*", "AIDER_*", "GEMINI_API_KEY", "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY", "GROQ_API_KEY", "XAI_API_KEY"},
		"claude":   {"ANTHROPIC_*", "CLAUDE_*"},
		"codex":    {"CODEX_*", "OPENAI_*", "AZURE_OPENAI_*"},
		"crush":    {"CRUSH_*", "OPENAI_*", "ANTHROPIC_*", "AZURE_OPENAI_*", "GEMINI_API_KEY", "GROQ_API_KEY", "OPENROUTER_API_KEY"},
		"gemini":   {"GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_GENAI_*"},
		"opencode": {"OPENCODE*", "OPENAI_*", "ANTHROPIC_*", "GOOGLE_*", "AZURE_OPENAI_*", "AZURE_API_KEY", "GEMINI_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "OPENROUTER_API_KEY", "XAI_API_KEY", "DEEPSEEK_API_KEY", "CEREBRAS_API_KEY", "TOGETHER_API_KEY", "FIREWORKS_API_KEY"},
		"pi":       {"PI_*", "OPENAI_*", "ANTHROPIC_*", "GEMINI_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "OPENROUTER_API_KEY", "XAI_API_KEY", "CEREBRAS_API_KEY"},
		"qwen":     {"QWEN_*", "OPENAI_*", "DASHSCOPE_API_KEY"},
		// Patterns of build tools; what they reach of a secret is listed below.
		"c":    {"CMAKE_*", "CCACHE_*"},
		"go":   {"CGO_*"},
		"node": {"COREPACK_ENABLE_*"},
		"rust": {"CARGO_NET_*", "CARGO_TERM_*", "CARGO_BUILD_*", "CARGO_PROFILE_*", "RUST_*"},
	}
	secret := regexp.MustCompile(`TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE_KEY|API_KEY|ACCESS_KEY|SOCK`)
	for _, name := range rules.ProfileNames() {
		p, err := rules.Parse(rules.Input{Sources: []rules.Source{{Kind: rules.RulesFile, Text: []byte("profiles = ['" + name + "']")}}})
		if err != nil {
			t.Fatal(err)
		}
		for e := range p.Pass() {
			risky := secret.MatchString(e.Text) || strings.Contains(e.Text, "*") && e.Text != "LC_*"
			owner := strings.TrimPrefix(strings.SplitN(e.From.String(), ":", 2)[0], "profile ")
			if risky && !slices.Contains(allowed[owner], e.Text) {
				t.Errorf("%s passes %s on (%s)", name, e.Text, e.From)
			}
		}
	}
	for e := range everything(t).Pass() {
		for _, s := range []string{
			"GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "NPM_TOKEN", "NODE_AUTH_TOKEN",
			"CARGO_REGISTRY_TOKEN", "CARGO_REGISTRIES_X_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "DATABASE_PASSWORD", "PGPASSWORD",
			"VAULT_TOKEN", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DOCKER_HOST", "KUBECONFIG",
			"PYPI_TOKEN", "TWINE_PASSWORD", "UV_PUBLISH_TOKEN", "NPM_CONFIG__AUTH", "MAVEN_PASSWORD", "GOAUTH", "LD_PRELOAD", "BASH_ENV", "NODE_OPTIONS",
		} {
			if ok, _ := path.Match(e.Text, s); ok {
				t.Errorf("%s (%s) passes %s on", e.Text, e.From, s)
			}
		}
	}
}

func TestTriggersNameProfiles(t *testing.T) {
	for _, m := range rules.Markers() {
		if got := rules.ChosenBy([]string{m}); len(got) != 2 || !slices.Contains(rules.ProfileNames(), got[1]) {
			t.Errorf("%s chooses %q", m, got)
		}
		p, err := rules.Parse(rules.Input{Markers: []string{m}})
		if err != nil {
			t.Error(err)
		}
		if d := cmp.Diff(rules.ChosenBy([]string{m}), p.Profiles()); d != "" {
			t.Error(d)
		}
	}
}

// What a profile creates belongs to the tool: a name of its own below HOME.
func TestProfilesCreateUnderHome(t *testing.T) {
	for name, getenv := range worlds() {
		for g := range everything(t).Grants() {
			s, ok := g.Path.Expand("/h", getenv)
			if g.Create && ok && !strings.HasPrefix(s, "/h/") {
				t.Errorf("%s: %s creates %s", name, g.From, s)
			}
		}
	}
}

// What a jail with some profile may write: an earlier run may have been there.
func TestWritten(t *testing.T) {
	var got []string
	for _, p := range rules.Written() {
		got = append(got, p.Text)
	}
	for _, want := range []string{".", "${CODEX_HOME:-~/.codex}", "${CLAUDE_CONFIG_DIR:-~/.claude}", "${XDG_CACHE_HOME:-~/.cache}/go-build"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}
