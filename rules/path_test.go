package rules

import (
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	const (
		emptyFallback = `the fallback of "${NAME:-fallback}" is empty`
		noGlob        = `patterns are for "protect" and "hide" only; a literal character is written [?] [*] [[]`
		control       = "the path has a control character"
		tilde         = `"~name" is not supported: write the path out`
		dollar        = `variables are written ${NAME}, at the start of the path`
	)
	for _, tt := range []struct {
		text     string
		grant    Path
		whyGrant string
		carve    Path // the same as grant where empty and whyCarve is too
		whyCarve string
	}{
		{text: "/a", grant: Path{Text: "/a"}},
		{text: ".", grant: Path{Text: "."}},
		{text: "/a?", grant: Path{Text: "/a", Optional: true}},
		{text: "~", grant: Path{Text: "~"}},
		{text: "~/x?", grant: Path{Text: "~/x", Optional: true}},
		{text: "a/~", grant: Path{Text: "a/~"}},
		{text: "~x", whyGrant: tilde, whyCarve: tilde},
		{text: "~root/.ssh", whyGrant: tilde, whyCarve: tilde},
		{text: "", whyGrant: "the path is empty", whyCarve: "the path is empty"},
		{text: "?", whyGrant: "the path is empty", whyCarve: "the path is empty"},
		{text: "a\x00", whyGrant: control, whyCarve: control},
		{text: "a\n", whyGrant: control, whyCarve: control},
		{text: "\x1b[31m", whyGrant: control, whyCarve: control},
		{text: "a\x7f", whyGrant: control, whyCarve: control},
		{text: "ü/ 日", grant: Path{Text: "ü/ 日"}},
		{text: `a\b`, grant: Path{Text: `a\b`}},
		// Literal characters.
		{text: "a[?]", grant: Path{Text: "a?"}},
		{text: "a[?]?", grant: Path{Text: "a?", Optional: true}},
		{text: "[*]/[[]x]", grant: Path{Text: "*/[x]"}},
		{text: "[[]?]", whyGrant: noGlob, carve: Path{Text: "[[]?]", Glob: true}},
		// Patterns.
		{text: "*.env", whyGrant: noGlob, carve: Path{Text: "*.env", Glob: true}},
		{text: "**/.env.*?", whyGrant: noGlob, carve: Path{Text: "**/.env.*", Glob: true, Optional: true}},
		{text: "a?b", whyGrant: noGlob, carve: Path{Text: "a?b", Glob: true}},
		{text: "a??", whyGrant: noGlob, carve: Path{Text: "a?", Glob: true, Optional: true}},
		{text: "[a-c]/[?]", whyGrant: noGlob, carve: Path{Text: "[a-c]/[?]", Glob: true}},
		{text: "[a", whyGrant: noGlob, whyCarve: "the pattern is malformed"},
		{text: "{a,b}/*", whyGrant: noGlob, carve: Path{Text: "{a,b}/*", Glob: true}},
		// Variables.
		{text: "${A}/b", grant: Path{Text: "${A}/b"}},
		{text: "${A:-~/c}/b?", grant: Path{Text: "${A:-~/c}/b", Optional: true}},
		{text: "${A}", grant: Path{Text: "${A}"}},
		{text: "${A:-}", whyGrant: emptyFallback, whyCarve: emptyFallback},
		{text: "${A", whyGrant: `"${" is not closed`, whyCarve: `"${" is not closed`},
		{text: "${}", whyGrant: `"${...}" needs the name of an environment variable`, whyCarve: `"${...}" needs the name of an environment variable`},
		{text: "${1}", whyGrant: `"${...}" needs the name of an environment variable`, whyCarve: `"${...}" needs the name of an environment variable`},
		{text: "${A:=b}", whyGrant: `"${...}" needs the name of an environment variable`, whyCarve: `"${...}" needs the name of an environment variable`},
		{text: "${A}b", whyGrant: `"${NAME}" must be followed by "/"`, whyCarve: `"${NAME}" must be followed by "/"`},
		{text: "$A/b", whyGrant: dollar, whyCarve: dollar},
		{text: "/x/${A}", whyGrant: dollar, whyCarve: dollar},
		{text: "${A}/${B}", whyGrant: dollar, whyCarve: dollar},
		{text: "a$b", grant: Path{Text: "a$b"}}, // Java's inner classes
	} {
		got, why := parsePath(tt.text, false)
		if got != tt.grant || why != tt.whyGrant {
			t.Errorf("grant %q: want %+v %q, got %+v %q", tt.text, tt.grant, tt.whyGrant, got, why)
		}
		want := tt.carve
		if want == (Path{}) && tt.whyCarve == "" {
			want = tt.grant
		}
		if got, why := parsePath(tt.text, true); got != want || why != tt.whyCarve {
			t.Errorf("carve-out %q: want %+v %q, got %+v %q", tt.text, want, tt.whyCarve, got, why)
		}
	}
}

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "/a", "LIST": "/l1:/l2", "EMPTY": "", "COLON": ":/x", "TILDE": "~/t"}
	for _, tt := range []struct {
		text, want string
		ok         bool
	}{
		{"/x", "/x", true},
		{"x/../y", "x/../y", true},
		{"~", "/h", true},
		{"~/x", "/h/x", true},
		{"${A}", "/a", true},
		{"${A}/x", "/a/x", true},
		{"${A:-~/y}/x", "/a/x", true},
		{"${NONE:-~/y}/x", "/h/y/x", true},
		{"${NONE:-~}", "/h", true},
		{"${EMPTY:-/d}/x", "/d/x", true},
		{"${NONE}/x", "", false},
		{"${EMPTY}/x", "", false},
		{"${COLON}/x", "", false},
		{"${LIST}/x", "/l1/x", true},
		{"${TILDE}/x", "~/t/x", true}, // no shell: tools take it literally, and so do we
	} {
		got, ok := Path{Text: tt.text}.Expand("/h", func(n string) string { return env[n] })
		if got != tt.want || ok != tt.ok {
			t.Errorf("%q: want %q %t, got %q %t", tt.text, tt.want, tt.ok, got, ok)
		}
	}
}

// An empty fallback must not turn a path below a variable into one below "/".
func TestEmptyFallbackIsNotRoot(t *testing.T) {
	for _, text := range []string{"${NONE:-}/x", "${NONE:-}/"} {
		if _, why := parsePath(text, false); why == "" {
			if got, ok := (Path{Text: text}).Expand("/h", func(string) string { return "" }); ok && strings.HasPrefix(got, "/") {
				t.Errorf("%q is accepted and means %q", text, got)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	for _, tt := range []struct{ word, want string }{
		{"mount", "mounts"},
		{"mounts", "mounts"},
		{"prots", "ports"},
		{"", ""},
		{"zzzzzzzzzzzz", ""},
	} {
		if got := Nearest(tt.word, WaiverNames()); got != tt.want {
			t.Errorf("%q: want %q, got %q", tt.word, tt.want, got)
		}
	}
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"abc", "abc", 0}, {"ab", "ba", 2}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q to %q: want %d, got %d", tt.a, tt.b, tt.want, got)
		}
	}
}
