package rules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jail/rules"
)

func TestCommands(t *testing.T) {
	digest := strings.Repeat("aF", 32)
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"commands.allow = ['git', '/bin/sh?']", []string{"allow /bin/sh?", "allow git", "upgrades off by f"}},
		{"commands.allow = ['git']\n[artifact]\nrun = 'deny'", []string{"allow git", "artifact no run", "upgrades off by f"}},
		{"commands.deny = ['git?', '~/x']", []string{"deny git?", "deny ~/x"}},
		{
			"[[command]]\nname = 'git'\npath = '/bin/git'\nsha256 = '" + digest + "'\nmessage = 'm'\nhelpers = ['x?']",
			[]string{"command git file=/bin/git sha256=" + strings.ToLower(digest) + " message=m helpers=[{x true false false}]"},
		},
		{
			"[[command]]\nname = 'git'\nmessage = 'm'\nhelpers = ['x']\n[[command]]\nname = 'git'\npath = '/g'\nhelpers = ['y']",
			[]string{"command git file=/g sha256= message=m helpers=[{x false false false} {y false false false}]"},
		},
	} {
		p, err := one(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if d := cmp.Diff(tt.want, show(p)); d != "" {
			t.Errorf("%q:\n%s", tt.text, d)
		}
	}
}

// Lists unite over the files; one list without the seal turns upgrades off.
func TestCommandsMerge(t *testing.T) {
	p, err := rules.Parse(rules.Input{Sources: []rules.Source{
		{Kind: rules.UserFile, Name: "u", Text: []byte("profiles = []\ncommands.allow = ['a']")},
		{Kind: rules.RulesFile, Name: "f", Text: []byte("commands.allow = ['b']\ncommands.deny = ['c']")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"allow a", "allow b", "deny c", "upgrades off by f"}, show(p)); d != "" {
		t.Error(d)
	}
}

func TestLockErrors(t *testing.T) {
	const hint = "`jail lock --update` writes the file anew"
	good := "sha256 = '" + strings.Repeat("0", 64) + "'\n"
	for _, tt := range []struct{ text, want string }{
		{"", "l: version 0 is not known"},
		{"version = 1\n[[command]\n", "l:3: expected end of table array name delimiter ']', but got '\\n' instead"},
		{"version = 2", "l: version 2 is not known"},
		{"version = 1\nx = 1", `l: unknown key "x"`},
		{"version = 1\n[[command]]\nname = 'a'\nNAME = 'b'", `l: unknown key "command.NAME"`},
		{"version = 1\n[[command]]\npath = '/a'\n" + good, `l:2: [[command]] needs a "name"`},
		{"version = 1\n\n[[command]]\nname = 'a'\npath = 'a'\n" + good, `l:3: "a" is no absolute path`},
		{"version = 1\n[[command]]\nname = 'a'\npath = '/a/../b'\n" + good, `l:2: "/a/../b" is no absolute path`},
		{"version = 1\n[[command]]\nname = 'a'\npath = '/a'\nsha256 = '00'", `l:2: "00" is no SHA-256 digest: 64 hexadecimal digits are expected`},
		{
			"version = 1\n[[command]]\nname = 'a'\npath = '/a'\n" + good + "[[command]]\nname = 'a'\npath = '/b'\n" + good,
			`l:6: "a" is locked twice`,
		},
	} {
		_, err := rules.ParseLock("l", []byte(tt.text))
		if err == nil {
			t.Errorf("%q parses", tt.text)
			continue
		}
		if d := cmp.Diff([]string{tt.want, hint}, said(t, err)); d != "" {
			t.Errorf("%q:\n%s", tt.text, d)
		}
	}
}

// The file is sorted and ends where it says.
func TestFormatLock(t *testing.T) {
	text, err := rules.FormatLock([]rules.Locked{
		{Name: "sh", Path: "/bin/dash", SHA256: "b", Package: "dash", Version: "0.5"}, {Name: "go", Path: "/go", SHA256: "a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `# Written by ` + "`jail lock`" + `: what each allowed command was. ` + "`jail lock --update`" + ` renews it.
version = 1

[[command]]
name = "go"
path = "/go"
sha256 = "a"

[[command]]
name = "sh"
path = "/bin/dash"
sha256 = "b"
package = "dash"
version = "0.5"
`
	if d := cmp.Diff(want, string(text)); d != "" {
		t.Error(d)
	}
}
