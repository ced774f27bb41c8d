package advice

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/plan"
)

func testPlaces(t *testing.T) Places {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	p := Places{Home: home, Root: filepath.Join(home, "proj"), Secrets: []string{home + "/.ssh", home + "/.config/gh", home + "/.cargo/credentials.toml"}}
	for _, dir := range []string{"proj/src", ".cache/tool", ".config", ".ssh", ".cargo/registry", "tools/bin", "data", ".local/share/app"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"data/f", ".toolrc", "tools/bin/t", "tools/bin/server.pem"} {
		if err := os.WriteFile(filepath.Join(home, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// What is proposed for one access; "" is nothing at all.
func TestGrant(t *testing.T) {
	p := testPlaces(t)
	for _, tt := range []struct {
		path   string
		access plan.Access
		want   string
	}{
		{"~/.cache/tool/deep/f", plan.Write, `[files] write = ["~/.cache/tool"]`},
		{"~/.cache/tool/deep/f", plan.Read, `[files] read = ["~/.cache/tool"]`},
		{"~/.cache/other/f", plan.Write, `[files] create = ["~/.cache/other"]`},
		{"~/.local/share/app/x", plan.Write, `[files] write = ["~/.local/share/app"]`},
		{"~/data/f", plan.Read, `[files] read = ["~/data/f"]`},
		{"~/data/new", plan.Write, `[files] write = ["~/data"]`},
		{"~/.toolrc", plan.Write, `[files] write = ["~/.toolrc"]`},
		{"~/.toolrc.new", plan.Write, ""},
		{"~/tools/bin/t", plan.Exec, `[files] exec = ["~/tools/bin"]`},
		{"~/tools/bin/server.pem", plan.Read, ""},
		{"~/.ssh/id", plan.Read, ""},
		{"~/.ssh", plan.Read, ""},
		{"~/.config", plan.Read, ""},
		{"~/.config/gh/hosts.yml", plan.Write, ""},
		{"~/.cargo/registry/index/x", plan.Write, `[files] write = ["~/.cargo/registry"]`},
		{"~/.cargo/credentials.toml", plan.Read, ""},
		{"~", plan.Read, ""},
		{"/", plan.Read, ""},
		{"/home", plan.Write, ""},
		{"~/data/a\n[commands]", plan.Exec, ""},
		{"~/data/\xff", plan.Read, ""},
		{"~/proj/src/x", plan.Write, `[files] write = ["."]`},
	} {
		got := ""
		if r, ok := p.grant(strings.Replace(tt.path, "~", p.Home, 1), tt.access); ok {
			got = r.String()
		}
		if got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.access, tt.path, got, tt.want)
		}
	}
}

func TestMerge(t *testing.T) {
	got := Merge([]Rule{
		{"files", "read", `"~/a/f"`},
		{"files", "write", `"~/a"`},
		{"network", "connect", "443"},
		{"files", "write", `"~/b"`},
		{"files", "write", `"~/a"`},
		{"network", "interfaces", "true"},
		{"artifact", "run", `"seal"`},
		{"files", "read", `"~/ab"`},
	})
	want := `[files]
write = ["~/a", "~/b"]
read = ["~/ab"]
[network]
connect = [443]
interfaces = true
[artifact]
run = "seal"
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Many files become the directory that they are in, a few stay what they are, and
// nothing grows beyond what is too much.
func TestCollapse(t *testing.T) {
	p := testPlaces(t)
	l := NewLearner(plan.Plan{}, p)
	add := func(path string, a plan.Access) {
		l.needs[path] = &need{path: path, access: a, by: []string{"x"}}
	}
	for _, dir := range []string{"a", "b", "c", "d"} {
		for _, file := range []string{"1", "2", "3", "4"} {
			add(filepath.Join(p.Home, "data", dir, file), plan.Read)
		}
	}
	for _, name := range []string{"one", "two", "three", "four", "five"} {
		add(filepath.Join(p.Home, name), plan.Read)
	}
	add("/opt/big/lib/x", plan.Read)
	add(p.Home+"/.ssh/id", plan.Read)
	lines, left := l.Propose(plan.Plan{})
	var got []string
	for _, x := range lines {
		got = append(got, x.Key+" "+x.Value)
	}
	want := []string{
		`read "/opt/big/lib/x?"`, `read "~/data?"`, `read "~/five?"`, `read "~/four?"`, `read "~/one?"`, `read "~/three?"`, `read "~/two?"`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(left) != 1 || left[0].Path != p.Home+"/.ssh/id" {
		t.Errorf("%+v", left)
	}
}

// A path with characters of patterns, or of TOML, is written so that it means itself.
func TestWrite(t *testing.T) {
	p := Places{Home: "/home/u", Root: "/home/u/p"}
	for path, want := range map[string]string{
		"/home/u/a*[b]": `"~/a[*][[]b]"`, "/home/u/c?": `"~/c[?]"`, `/x/"\`: `"/x/\"\\"`, "/home/u/p/d": `"d"`, "/home/u/p": `"."`,
	} {
		if got := quote(p.write(path)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
