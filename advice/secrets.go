package advice

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Places knows where things lie: HOME, the project, and where secrets are kept.
type Places struct {
	Home, Root string
	// Secrets are paths that no proposal reaches; they need not exist.
	Secrets []string
}

// within tells whether name is dir or lies beneath it.
func within(name, dir string) bool {
	return name == dir || dir == "/" || strings.HasPrefix(name, dir+"/")
}

// secretNames are what keys and tokens are called. Elsewhere than under HOME they
// are public (certificates), and in the project they are the project's.
var secretNames = []string{
	".env", ".env.*", "id_rsa*", "id_ed25519*", "id_ecdsa*", "*.pem", "*.key", "*.p12", "*.pfx", "*.kdbx",
	"credentials*", "*token", "secrets.*", ".netrc", "*_history",
}

// unwritable tells whether no rule file can name a path: a line end in a name must not
// begin a line of its own in what is proposed.
func unwritable(name string) bool {
	return !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r != ' ' && !unicode.IsGraphic(r) })
}

// Secret tells whether a path is one, or lies in one, or looks like one.
func (p Places) Secret(name string) bool {
	if slices.ContainsFunc(p.Secrets, func(s string) bool { return within(name, s) }) {
		return true
	}
	if !within(name, p.Home) || within(name, p.Root) {
		return false
	}
	return slices.ContainsFunc(secretNames, func(pattern string) bool {
		ok, _ := path.Match(pattern, path.Base(name)) // our own patterns are well formed
		return ok
	})
}

// optionals are places under HOME that programs write to where they may, and do
// without: go counts there which of its programs run.
var optionals = []string{".config/go/telemetry"}

// optional tells whether a call is about such a place, or makes what is above it.
func (p Places) optional(name, op string) bool {
	return slices.ContainsFunc(optionals, func(o string) bool {
		o = filepath.Join(p.Home, o)
		return within(name, o) || op == "mkdir" && within(o, name)
	})
}

// tooWide tells whether a directory is not for granting: it holds secrets, or a
// home, or the project, or everything.
func (p Places) tooWide(dir string) bool {
	return within(p.Home, dir) || within(p.Root, dir) || strings.Count(dir, "/") < 2 || p.Secret(dir) ||
		slices.ContainsFunc(p.Secrets, func(s string) bool { return within(s, dir) })
}

// shelves hold a directory for each program.
var shelves = []string{".config", ".cache", ".local/share", ".local/state", ".local/lib", "Library/Caches", ""}

// Unit is the directory of the program to which a path under HOME belongs:
// ~/.cache/tool for all beneath it. ok is false where there is no such directory,
// or secrets are kept in it.
func (p Places) Unit(name string) (dir string, ok bool) {
	for _, shelf := range shelves {
		rest, found := strings.CutPrefix(name, filepath.Join(p.Home, shelf)+"/")
		first, _, deeper := strings.Cut(rest, "/")
		if !found {
			continue
		}
		if shelf == "" && !strings.HasPrefix(first, ".") {
			return "", false // a person's own
		}
		dir = filepath.Join(p.Home, shelf, first)
		if p.tooWide(dir) && deeper {
			second, _, _ := strings.Cut(strings.TrimPrefix(name, dir+"/"), "/")
			dir = filepath.Join(dir, second)
		}
		return dir, !p.tooWide(dir)
	}
	return "", false
}

// write is how a rule file names a path.
func (p Places) write(name string) string {
	if name == p.Root {
		name = "."
	} else if rest, ok := strings.CutPrefix(name, p.Root+"/"); ok {
		name = rest
	} else if rest, ok := strings.CutPrefix(name, p.Home+"/"); ok {
		name = "~/" + rest
	}
	name = strings.NewReplacer("[", "[[]", "*", "[*]").Replace(name)
	if strings.HasSuffix(name, "?") {
		name = strings.TrimSuffix(name, "?") + "[?]"
	}
	return name
}
