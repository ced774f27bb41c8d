package rules_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/rules"
)

// What several files say together, in every order of the files.
func TestMerge(t *testing.T) {
	const none = "profiles = []\n"
	for _, tt := range []struct {
		name  string
		texts map[string]string
		want  []string
	}{
		{
			"grants and carve-outs unite",
			map[string]string{
				"a": none + "files = { read = ['/r'], write = ['.'], hide = ['.env'] }",
				"b": "files = { read = ['/r', '/s'], exec = ['/usr'], protect = ['.env'] }",
				"c": "files = { read = [], write = [], exec = [], hide = [], protect = [] }", // [] takes nothing away
			},
			[]string{"exec /usr", "hide .env", "protect .env", "read /r", "read /s", "write ."},
		},
		{
			"ports unite over the files that set them",
			map[string]string{"a": none + "network.connect = [443]", "b": "network.connect = [80]", "c": "[network]\nbind = []"},
			[]string{"bind []", "connect [80 443]"},
		},
		{
			"an empty list restricts, an absent one does not widen",
			map[string]string{"a": none + "network.connect = []", "b": "version = 1"},
			[]string{"connect []"},
		},
		{
			"an empty list does not undo another",
			map[string]string{"a": none + "network.connect = []", "b": "network.connect = [443]"},
			[]string{"connect [443]"},
		},
		{
			"false beats true",
			map[string]string{
				"a": none + "network = { udp = true, interfaces = true }", "b": "network = { udp = false }",
				"c": "network = { udp = true, interfaces = false }",
			},
			nil,
		},
		{
			"true and absent",
			map[string]string{"a": none + "network.udp = true", "b": "version = 1", "c": "network.interfaces = true"},
			[]string{"interfaces", "udp"},
		},
		{
			"the lowest limit",
			map[string]string{"a": none + "limits = { cpu = 9, memory = 50000000 }", "b": "limits = { cpu = 3 }", "c": "limits = { cpu = 6, open_files = 20 }"},
			[]string{"limit cpu 3", "limit memory 50000000", "limit open_files 20"},
		},
		{
			"one value in two files",
			map[string]string{"a": none + "env.set.CI = '1'", "b": "env.set.CI = '1'\nenv.pass = ['A']", "c": "env.pass = ['B', 'A']"},
			[]string{"pass A", "pass B", "set CI=1"},
		},
		{
			"waivers unite",
			map[string]string{"a": none + "waive = ['mounts']", "b": "waive = ['ports', 'mounts']", "c": "waive = []"},
			[]string{"waive mounts", "waive ports"},
		},
		{
			"artifacts: deny beats seal, the stricter switch, the lower limit, lists unite",
			map[string]string{
				"a": none + "artifact = { run = 'seal', libraries = 'deny', write = ['.'], limits = { cpu = 3 } }",
				"b": "artifact = { run = 'deny', libraries = 'seal', network = false, deny = ['a'], limits = { cpu = 2 } }",
				"c": "artifact = { network = true, write = ['b'], env = { drop = ['X'] }, deny = ['c'] }",
			},
			[]string{
				"artifact deny a", "artifact deny c", "artifact drop X", "artifact limit cpu 2", "artifact no libraries", "artifact no network",
				"artifact no run", "artifact write .", "artifact write b", "artifact write set",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			permutations(slices.Sorted(maps.Keys(tt.texts)), func(names []string) {
				p, err := ordered(tt.texts, names)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tt.want, show(p), cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })); d != "" {
					t.Errorf("%v:\n%s", names, d)
				}
			})
		})
	}
}

// The order does not matter for real profiles and files either.
func TestMergeOrderOfEverything(t *testing.T) {
	texts := map[string]string{
		"a": "profiles = ['go', 'node']\nfiles.hide = ['.env']",
		"b": "profiles = ['default', 'rust']\nnetwork = { interfaces = false, connect = [22] }",
		"c": "profiles = ['python', 'go', 'claude']\nlimits.cpu = 4",
		"d": "limits.cpu = 5\nnetwork.connect = [443]\nwaive = ['mounts']",
	}
	var want []string
	permutations(slices.Sorted(maps.Keys(texts)), func(names []string) {
		p, err := ordered(texts, names)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = show(p)
		}
		if d := cmp.Diff(want, show(p)); d != "" {
			t.Errorf("%v:\n%s", names, d)
		}
	})
	if !slices.Contains(want, "limit cpu 4") || slices.Contains(want, "interfaces") || !slices.Contains(want, "connect [22 443]") {
		t.Errorf("not merged: %q", want)
	}
}

func TestConflictingVariables(t *testing.T) {
	texts := map[string]string{"a": "profiles = []\nenv.set.CI = '1'", "b": "\n\nenv.set.CI = '2'"}
	for _, tt := range []struct {
		names []string
		want  []string
	}{
		{[]string{"a", "b"}, []string{`b:3: CI is set to "2" here and to "1" at a:2`, "remove one of them"}},
		{[]string{"b", "a"}, []string{`a:2: CI is set to "1" here and to "2" at b:3`, "remove one of them"}},
	} {
		_, err := ordered(texts, tt.names)
		if d := cmp.Diff(tt.want, said(t, err)); d != "" {
			t.Error(d)
		}
	}
	_, err := one("profiles = ['claude']\nenv.set.CLAUDE_CONFIG_DIR = '/elsewhere'")
	want := []string{`f:2: CLAUDE_CONFIG_DIR is set to "/elsewhere" here and to "${CLAUDE_CONFIG_DIR:-~/.claude}" at profile claude:23`, "remove one of them"}
	if d := cmp.Diff(want, said(t, err)); d != "" {
		t.Error(d)
	}
}

func TestWhichProfiles(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   rules.Input
		want []string
	}{
		{"nothing known", rules.Input{}, []string{"default"}},
		{"command", rules.Input{Command: "claude"}, []string{"default", "claude"}},
		{"markers", rules.Input{Command: "bash", Markers: []string{"go.mod", "package.json"}}, []string{"default", "go", "node"}},
		{"both", rules.Input{Command: "cargo", Markers: []string{"Cargo.toml"}}, []string{"default", "rust"}},
		{"a profile builds on another", rules.Input{Command: "aider"}, []string{"default", "aider", "python"}},
		{"a flag adds", rules.Input{Command: "codex", Flags: rules.Flags{Profiles: []string{"c", "codex"}}}, []string{"default", "codex", "c"}},
		{"none", rules.Input{Command: "claude", Sources: sources("profiles = []")}, nil},
		{"none, and a flag", rules.Input{Sources: sources("profiles = []"), Flags: rules.Flags{Profiles: []string{"c"}}}, []string{"c"}},
		{"absent in all files", rules.Input{Command: "pi", Sources: sources("", "version = 1")}, []string{"default", "pi"}},
		{"union", rules.Input{Command: "pi", Sources: sources("profiles = ['go']", "", "profiles = ['c', 'go']")}, []string{"go", "c"}},
		{"empty and named", rules.Input{Sources: sources("profiles = []", "profiles = ['go']")}, []string{"go"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := rules.Parse(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, p.Profiles()); d != "" {
				t.Error(d)
			}
		})
	}
	_, err := one("profiles = ['go',\n 'nodejs']")
	if d := cmp.Diff([]string{`f:2: there is no profile "nodejs"`, "did you mean node?"}, said(t, err)); d != "" {
		t.Error(d)
	}
}

func sources(texts ...string) []rules.Source {
	var out []rules.Source
	for _, s := range texts {
		out = append(out, rules.Source{Kind: rules.RulesFile, Name: "f", Text: []byte(s)})
	}
	return out
}

func TestWhoMayWaive(t *testing.T) {
	for kind, want := range map[rules.Kind]bool{rules.Profile: false, rules.UserFile: true, rules.ProjectFile: true, rules.RulesFile: true} {
		p, err := rules.Parse(rules.Input{Sources: []rules.Source{{Kind: kind, Name: "f", Text: []byte("profiles = []\nwaive = ['mounts']")}}})
		if got := err == nil && len(show(p)) == 1; got != want {
			t.Errorf("kind %d: want %t, got %q, %v", kind, want, show(p), err)
		}
		if want {
			continue
		}
		if d := cmp.Diff([]string{"f:2: a profile can't waive anything"}, said(t, err)); d != "" {
			t.Error(d)
		}
	}
}

// A grant reopens a carve-out only from the same source: each file has a number
// of its own, and flags and profiles never share one with a file.
func TestSourcesAreTold(t *testing.T) {
	p, err := rules.Parse(rules.Input{
		Sources: sources("profiles = ['go', 'c']\nfiles.read = ['a']", "files.read = ['b']"), Flags: rules.Flags{Read: []string{"c"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]string{}
	for g := range p.Grants() {
		if have, ok := seen[g.From.Source]; ok && have != g.From.File {
			t.Errorf("source %d is %s and %s", g.From.Source, have, g.From.File)
		}
		seen[g.From.Source] = g.From.File
	}
	if len(seen) != 5 { // both files are called f, so they must differ in number
		t.Errorf("want 5 sources, got %v", seen)
	}
}
