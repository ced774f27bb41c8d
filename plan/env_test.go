package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
)

func TestEnvironment(t *testing.T) {
	w := newWorld(t)
	w.host.Env = []string{
		"HOME=" + w.path("home"), "MY_A=1", "MY_B=x=y", "OTHER=2", "TMPDIR=/x", "EMPTY=", "novalue", "=odd", "CI=old", "CI=older", "GOPATH=/a:/b",
	}
	p := w.plan(`[env]
pass = ["MY_*", "EMPTY", "CI", "*DIR"]
set  = { CI = "1", H = "~/x", G = "${GOPATH}/pkg", N = "${NONE}/x", D = "${NONE:-~/d}", T = "~x", V = "a ~ ${B}" }
`)
	want := []string{"MY_A=1", "MY_B=x=y", "EMPTY=", "CI=1", "D=B/home/d", "G=/a/pkg", "H=B/home/x", "T=~x", "V=a ~ ${B}"}
	var got []string
	for _, kv := range p.Env {
		got = append(got, w.short(kv))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"", "GOPATH", "HOME", "OTHER"}, p.Dropped); d != "" {
		t.Error(d)
	}
}

// loaders make a program that is started run code of somebody else's choice.
var loaders = []string{
	"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "BASH_ENV", "ENV", "BASH_FUNC_ls%%", "SHELLOPTS",
	"PS4", "PROMPT_COMMAND", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PERL5LIB", "PERL5OPT", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS",
	"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH",
	"GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_GLOBAL", "LESSOPEN", "OPENSSL_CONF", "RUSTC_WRAPPER", "LUA_INIT", "SSH_ASKPASS",
}

// A pattern never reaches a variable that loads code; its own name does.
func TestPatternsReachNoLoader(t *testing.T) {
	w := newWorld(t)
	w.host.Env = nil
	for _, name := range loaders {
		w.host.Env = append(w.host.Env, name+"=x")
	}
	for _, pass := range []string{`"*"`, `"**"`, `"LD_*", "GIT_*", "PYTHON*", "*_OPTIONS", "BASH*", "*PATH", "*_WRAPPER"`} {
		if p := w.plan("env.pass = [" + pass + "]"); len(p.Env) != 0 {
			t.Errorf("%s passes %q", pass, p.Env)
		}
	}
	p := w.plan(`env.pass = ["*", "LD_PRELOAD", "NODE_OPTIONS"]`)
	if d := cmp.Diff([]string{"LD_PRELOAD=x", "NODE_OPTIONS=x"}, p.Env); d != "" {
		t.Error(d)
	}
}

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"A", "A", true},
		{"A", "AB", false},
		{"A", "a", false},
		{"A*", "A", true},
		{"A*", "ABC", true},
		{"*A", "XA", true},
		{"A*B", "A/x/B", false}, // names with a slash are no names
		{"A*B*C", "AxByC", true},
		{"*", "X", true},
	} {
		w := newWorld(t)
		w.host.Env = []string{tt.name + "=1"}
		if got := len(w.plan(`env.pass = ["`+tt.pattern+`"]`).Env) == 1; got != tt.want {
			t.Errorf("%s, %s: want %t, got %t", tt.pattern, tt.name, tt.want, got)
		}
	}
}

// What makes a temporary directory private is not for rules to set.
func TestTMPDIRIsNotPassed(t *testing.T) {
	w := newWorld(t)
	w.host.Env = []string{"TMPDIR=/x"}
	for _, text := range []string{`env.pass = ["TMPDIR"]`, `env.pass = ["*"]`} {
		if p := w.plan(text); len(p.Env) != 0 {
			t.Errorf("%s passes %q", text, p.Env)
		}
	}
	if p := (plan.Plan{}); p.Env != nil {
		t.Error("the zero plan has an environment")
	}
}

// A cache that is there may be written and is named; one that is not there is
// private. No variable stands twice, whatever the host's environment has.
func TestCaches(t *testing.T) {
	const read = "profiles = ['go']"
	for _, tt := range []struct {
		name    string
		make    func(w *world)
		env     []string
		want    []string // of the environment
		private []string
		grants  []string
	}{
		{
			"absent", nil,
			[]string{"GOCACHE=off"},
			nil,
			[]string{"GOCACHE", "GOMODCACHE"},
			nil,
		},
		{
			"there", func(w *world) { w.dirs("home/.cache/go-build", "home/go/pkg/mod") }, nil,
			[]string{"GOCACHE=B/home/.cache/go-build", "GOMODCACHE=B/home/go/pkg/mod"},
			nil,
			[]string{"read+write B/home/.cache/go-build", "read+write B/home/go/pkg", "read+write B/home/go/pkg/mod"},
		},
		{
			"named by the host", func(w *world) { w.dirs("out/c", "home/.cache/go-build") },
			[]string{"GOCACHE=B/out/c", "GOMODCACHE=B/out/none"},
			[]string{"GOCACHE=B/out/c"},
			[]string{"GOMODCACHE"},
			[]string{"read+write B/out/c"},
		},
		{
			"a file in its place", func(w *world) { w.file("home/.cache/go-build", ""); w.link("nowhere", "home/go") }, nil, nil,
			[]string{"GOCACHE", "GOMODCACHE"},
			nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if tt.make != nil {
				tt.make(w)
			}
			w.host.Env = nil
			for _, kv := range tt.env {
				w.host.Env = append(w.host.Env, strings.ReplaceAll(kv, "B/", w.base+"/"))
			}
			p := w.plan(read)
			var env, private, grants []string
			for _, kv := range p.Env {
				if kv != "GOTOOLCHAIN=local" {
					env = append(env, w.short(kv))
				}
			}
			for _, c := range p.Private {
				private = append(private, c.Variable)
			}
			for _, g := range w.grants(p) {
				if strings.Contains(g, "write") {
					grants = append(grants, g)
				}
			}
			if d := cmp.Diff([][]string{tt.want, tt.private, tt.grants}, [][]string{env, private, grants}); d != "" {
				t.Error(d)
			}
		})
	}
}

// Where no profile of a toolchain is in use its cache is private to the run, though
// there is one in HOME; not where a rule lets that one be written.
func TestPrivateCaches(t *testing.T) {
	const all = "CARGO_HOME GOCACHE GOMODCACHE UV_CACHE_DIR npm_config_cache"
	for text, want := range map[string]string{
		"profiles = ['default']":                                all,
		"profiles = ['default', 'go']":                          "CARGO_HOME UV_CACHE_DIR npm_config_cache",
		"profiles = ['default', 'rust']":                        "GOCACHE GOMODCACHE UV_CACHE_DIR npm_config_cache",
		"profiles = ['default']\nfiles.write = ['~/.cache']":    "CARGO_HOME GOMODCACHE npm_config_cache",
		"profiles = ['default']\nenv.set = { GOCACHE = 'off' }": "CARGO_HOME GOMODCACHE UV_CACHE_DIR npm_config_cache",
		"profiles = []":                                         "",
	} {
		w := newWorld(t)
		w.dirs("home/.cache/go-build", "home/go/pkg/mod", "home/.cargo/registry")
		var got []string
		for _, c := range w.plan(text).Private {
			got = append(got, c.Variable)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// A cache is a grant like others: it keeps W^X and goes through no planted link.
func TestCachesAreProved(t *testing.T) {
	w := newWorld(t)
	w.dirs("usr/cache")
	w.host.Mounts = plan.Fact{} // it would take the outer right away
	w.host.Env = []string{"GOCACHE=" + w.path("usr/cache"), "B=" + w.base}
	if _, err := w.compile("profiles = ['go']\nfiles.exec = ['${B}/usr']"); err == nil || !strings.Contains(err.Error(), "may be written") {
		t.Errorf("a cache in an exec tree: %v", err)
	}
	w.link("B/out", "home/proj/c")
	w.host.Env = []string{"GOCACHE=" + w.path("home/proj/c")}
	if _, err := w.compile("profiles = ['go']\nfiles.write = ['.']"); err == nil || !strings.Contains(err.Error(), "which the jail may write") {
		t.Errorf("a cache behind a planted link: %v", err)
	}
}
