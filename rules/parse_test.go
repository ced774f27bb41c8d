package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/rules"
)

func TestEveryKey(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", nil},
		{"version", "version = 1", nil},
		{"read", `files.read = ["/a"]`, []string{"read /a"}},
		{"write", `files.write = ["."]`, []string{"write ."}},
		{"exec", `files.exec = ["/usr", "~/bin?"]`, []string{"exec /usr", "exec ~/bin?"}},
		{"create", `files.create = ["~/.cache/x"]`, []string{"write ~/.cache/x create"}},
		{"protect", `files.protect = [".git/hooks", "**/*.lock"]`, []string{"protect **/*.lock glob", "protect .git/hooks"}},
		{"hide", `files.hide = [".env", ".env.*?"]`, []string{"hide .env", "hide .env.*? glob"}},
		{"waive", `waive = ["mounts", "truncate", "ports", "signals"]`, []string{"waive mounts", "waive ports", "waive signals", "waive truncate"}},
		{"ports", "[network]\nconnect = [443, 80]\nbind = [1, 65535]", []string{"bind [1 65535]", "connect [80 443]"}},
		{"no ports", "[network]\nconnect = []", []string{"connect []"}},
		{"booleans", "[network]\nudp = true\ninterfaces = true", []string{"interfaces", "udp"}},
		{"booleans off", "[network]\nudp = false\ninterfaces = false", nil},
		{"unix", "[network]\nunix = \"any\"", []string{"unix any"}},
		{"pass", `env.pass = ["A", "MY_*", "*_Z9"]`, []string{"pass *_Z9", "pass A", "pass MY_*"}},
		{"set", "[env]\nset = { CI = \"1\", X = \"~/x\", E = \"\", M = \"a\\nb\" }", []string{"set CI=1", "set E=", "set M=a\nb", "set X=~/x"}},
		{"set, dotted", "env.set.CI = \"1\"", []string{"set CI=1"}},
		{"set, table", "[env.set]\nCI = \"1\"\n\"Q\" = \"${A:-b}/c\"", []string{"set CI=1", "set Q=${A:-b}/c"}},
		{"limits", "[limits]\nopen_files = 16\nfile_size = 2\ncpu = 3\nmemory = 16777216", []string{"limit cpu 3", "limit file_size 2", "limit memory 16777216", "limit open_files 16"}},
		{"artifact deny", "[artifact]\nrun = \"deny\"", []string{"artifact no run"}},
		{"artifact seal", "[artifact]\nrun = \"seal\"\nlibraries = \"seal\"\nnetwork = true", nil},
		{
			"artifact", "[artifact]\nlibraries = \"deny\"\nnetwork = false\nwrite = [\".\"]\ndeny = [\"*.exe\"]\n[artifact.env]\ndrop = [\"*_TOKEN\"]\n[artifact.limits]\ncpu = 5",
			[]string{"artifact deny *.exe glob", "artifact drop *_TOKEN", "artifact limit cpu 5", "artifact no libraries", "artifact no network", "artifact write .", "artifact write set"},
		},
		{"artifact writes nothing", "[artifact]\nwrite = []", []string{"artifact write set"}},
		{"guide", "[[guide]]\nmatch = \" git  push\"\nmessage = \"m\"\n[[guide]]\nmatch = \"x\"\nmessage = \"n\"\nstatus = 3", []string{"guide git push: m (126)", "guide x: n (3)"}},
		{"unix paths", "[network]\nunix = [\"/run/a\", \"~/b\"]", []string{"unix /run/a", "unix ~/b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := one(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, show(p)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestZeroPolicyGrantsNothing(t *testing.T) {
	if got := show(rules.Policy{}); got != nil {
		t.Errorf("the zero policy has %q", got)
	}
	p, err := rules.Parse(rules.Input{Sources: []rules.Source{{Text: []byte("profiles = []")}}})
	if err != nil || show(p) != nil {
		t.Errorf("profiles = [] has %q, %v", show(p), err)
	}
}

func TestFlags(t *testing.T) {
	none := []rules.Source{{Kind: rules.RulesFile, Name: "f", Text: []byte("profiles = []")}}
	p, err := rules.Parse(rules.Input{Sources: none, Flags: rules.Flags{
		Read: []string{"r?"}, Write: []string{"w"}, Exec: []string{"x"}, Protect: []string{"p"}, Hide: []string{"**/h"},
		Env: []string{"MY_*"}, Waive: []string{"mounts"}, Profiles: []string{"pi"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(show(p), func(s string) bool {
		return slices.Contains(showProfile(t, "pi"), s)
	})
	want := []string{"exec x flag", "hide **/h glob flag", "pass MY_*", "protect p flag", "read r? flag", "waive mounts", "write w flag"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"pi"}, p.Profiles()); d != "" {
		t.Error(d)
	}
	for g := range p.Grants() {
		if g.Path.Flag && g.From != (rules.Origin{File: map[rules.Access]string{
			rules.Read: "--read", rules.Write: "--write", rules.Exec: "--exec",
		}[g.Access], Source: -1}) {
			t.Errorf("%v comes from %+v", g, g.From)
		}
	}
	for _, tt := range []struct {
		flags rules.Flags
		want  []string
	}{
		{rules.Flags{Read: []string{""}}, []string{`--read: "": the path is empty`}},
		{rules.Flags{Write: []string{"a*"}}, []string{`--write: "a*": patterns are for "protect" and "hide" only; a literal character is written [?] [*] [[]`}},
		{rules.Flags{Exec: []string{"~x"}}, []string{`--exec: "~x": "~name" is not supported: write the path out`}},
		{rules.Flags{Hide: []string{"\x01"}}, []string{`--hide: "\x01": the path has a control character`}},
		{rules.Flags{Protect: []string{"[a"}}, []string{`--protect: "[a": the pattern is malformed`}},
		{rules.Flags{Env: []string{"A=1"}}, []string{`--env: "A=1" is not the name of an environment variable, nor a pattern such as MY_*`}},
		{rules.Flags{Waive: []string{"mount"}}, []string{`--waive: "mount" can't be waived`, "did you mean mounts?"}},
		{rules.Flags{Profiles: []string{"pyhton"}}, []string{`--profile: there is no profile "pyhton"`, "did you mean python?"}},
		{rules.Flags{Profiles: []string{"../profiles/go"}}, []string{`--profile: there is no profile "../profiles/go"`, "profiles are: " + strings.Join(rules.ProfileNames(), ", ")}},
	} {
		_, err := rules.Parse(rules.Input{Sources: none, Flags: tt.flags})
		if d := cmp.Diff(tt.want, said(t, err)); d != "" {
			t.Error(d)
		}
	}
}

func showProfile(t *testing.T, name string) []string {
	t.Helper()
	p, err := one(`profiles = ["` + name + `"]`)
	if err != nil {
		t.Fatal(err)
	}
	return show(p)
}

// Origins point at the element, whatever way the list is spelled.
func TestOrigins(t *testing.T) {
	p, err := one("[files]\nread = [\n  '/a', # c\n\n  \"/b\"\n]\nhide=[\"x\",\n\"y\"]\n[env]\npass = [\n\"A\"]\nset.B = \"1\"\n[limits]\ncpu = 1")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for g := range p.Grants() {
		got = append(got, g.Path.Text+" "+g.From.String())
	}
	for c := range p.Carves() {
		got = append(got, c.Path.Text+" "+c.From.String())
	}
	for e := range p.Pass() {
		got = append(got, e.Text+" "+e.From.String())
	}
	for v := range p.Set() {
		got = append(got, v.Name+" "+v.From.String())
	}
	for l := range p.Limits() {
		got = append(got, l.Name+" "+l.From.String())
	}
	want := []string{"/a f:4", "/b f:6", "x f:8", "y f:9", "A f:12", "B f:13", "cpu f:15"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAccessString(t *testing.T) {
	for a, want := range map[rules.Access]string{
		0: "none", rules.Read: "read", rules.Read | rules.Write: "read+write", rules.Write | rules.Exec: "write+exec", rules.Exec: "exec",
	} {
		if got := a.String(); got != want {
			t.Errorf("%d: want %s, got %s", a, want, got)
		}
	}
}
