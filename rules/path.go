package rules

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Access is what a grant allows on a path and all beneath it.
type Access uint8

// Write and Exec imply Read: the plan adds it.
const (
	Read Access = 1 << iota
	Write
	Exec
)

func (a Access) String() string {
	var s []string
	for _, n := range []struct {
		bit  Access
		name string
	}{{Read, "read"}, {Write, "write"}, {Exec, "exec"}} {
		if a&n.bit != 0 {
			s = append(s, n.name)
		}
	}
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, "+")
}

// Path is a path as a rule file names it: absolute, relative to the project
// tree, below "~", or below an environment variable ("${GOPATH:-~/go}/pkg").
type Path struct {
	Text     string // what was written, without the final "?"
	Optional bool   // a final "?": the path may be absent
	Glob     bool   // carve-outs only
	Flag     bool   // given on the command line: relative to the working directory
}

// parsePath checks what can be known without a file system.
func parsePath(text string, globs bool) (Path, string) {
	p := Path{Text: text}
	if strings.HasSuffix(text, "?") {
		p.Text, p.Optional = strings.TrimSuffix(text, "?"), true
	}
	switch {
	case p.Text == "":
		return Path{}, "the path is empty"
	case strings.ContainsFunc(p.Text, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return Path{}, "the path has a control character"
	case strings.HasPrefix(p.Text, "~") && p.Text != "~" && !strings.HasPrefix(p.Text, "~/"):
		return Path{}, `"~name" is not supported: write the path out`
	}
	if why := checkVariable(p.Text); why != "" {
		return Path{}, why
	}
	plain, isGlob := unbracket(p.Text)
	if !isGlob {
		p.Text = plain
		return p, ""
	}
	if !globs {
		return Path{}, `patterns are for "protect" and "hide" only; a literal character is written [?] [*] [[]`
	}
	if !doublestar.ValidatePattern(p.Text) {
		return Path{}, "the pattern is malformed"
	}
	p.Glob = true
	return p, ""
}

// unbracket undoes "[?]", "[*]" and "[[]", and tells whether what is left over
// is a pattern.
func unbracket(s string) (plain string, glob bool) {
	if !strings.ContainsAny(s, "*?[") {
		return s, false
	}
	rest := s
	for _, lit := range []string{"[?]", "[*]", "[[]"} {
		rest = strings.ReplaceAll(rest, lit, "")
	}
	if strings.ContainsAny(rest, "*?[") {
		return s, true
	}
	return strings.NewReplacer("[?]", "?", "[*]", "*", "[[]", "[").Replace(s), false
}

// variable is a "${NAME:-fallback}" at the start of a path, with what follows.
type variable struct {
	name     string
	fallback string // may begin with a variable of its own
	optional bool   // there is a fallback
	rest     string
}

// cutVariable splits a path that begins with "${".
func cutVariable(s string) (v variable, closed bool) {
	depth := 0
	for i := range len(s) {
		switch {
		case strings.HasPrefix(s[i:], "${"):
			depth++
		case s[i] == '}':
			if depth--; depth == 0 {
				v.name, v.fallback, v.optional = strings.Cut(s[2:i], ":-")
				v.rest = s[i+1:]
				return v, true
			}
		}
	}
	return variable{}, false
}

// checkVariable accepts "${NAME}" and "${NAME:-fallback}" at the start of a
// path, and elsewhere no "${", so that a typing error is never a literal name.
func checkVariable(s string) string {
	if !strings.HasPrefix(s, "${") {
		if strings.HasPrefix(s, "$") || strings.Contains(s, "${") {
			return `variables are written ${NAME}, at the start of the path`
		}
		return ""
	}
	v, closed := cutVariable(s)
	switch {
	case !closed:
		return `"${" is not closed`
	case !isEnvName(v.name):
		return `"${...}" needs the name of an environment variable`
	case v.optional && v.fallback == "":
		return `the fallback of "${NAME:-fallback}" is empty`
	case v.rest != "" && v.rest[0] != '/':
		return `"${NAME}" must be followed by "/"`
	case strings.Contains(v.rest, "${"):
		return `variables are written ${NAME}, at the start of the path`
	}
	return checkVariable(v.fallback)
}

// Expand replaces a leading "~" or variable. ok is false when the variable is
// unset and has no fallback. Of a value with colons (GOPATH) the first element
// counts, as the tools themselves do when they write.
func (p Path) Expand(home string, getenv func(string) string) (path string, ok bool) {
	return expand(p.Text, home, getenv)
}

func expand(s, home string, getenv func(string) string) (string, bool) {
	if s == "~" || strings.HasPrefix(s, "~/") {
		return home + s[1:], true
	}
	if !strings.HasPrefix(s, "${") {
		return s, true
	}
	v, _ := cutVariable(s)
	value, _, _ := strings.Cut(getenv(v.name), ":")
	if value == "" {
		if !v.optional {
			return "", false
		}
		var ok bool
		if value, ok = expand(v.fallback, home, getenv); !ok {
			return "", false
		}
	}
	return value + v.rest, true
}

func isEnvName(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
