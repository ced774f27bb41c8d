package rules

import (
	"bytes"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Lock is a lock file: for each command that the rule file beside it allows, the
// file that it was and the digest of its bytes.
type Lock struct {
	Name    string // of the lock file, for the person
	Source  int    // of the rule file beside it
	Entries []Locked
}

// Locked is one command of a lock file.
type Locked struct {
	Name    string `toml:"name"` // as the rule file names it, without "?"
	Path    string `toml:"path"` // real
	SHA256  string `toml:"sha256"`
	Package string `toml:"package,omitempty"` // Debian's, for the person
	Version string `toml:"version,omitempty"`
	At      Origin `toml:"-"`
}

type lockDocument struct {
	Version int      `toml:"version"`
	Command []Locked `toml:"command"`
}

// ParseLock reads a lock file.
func ParseLock(name string, text []byte) ([]Locked, error) {
	var doc lockDocument
	md, err := toml.Decode(string(text), &doc)
	if err != nil {
		p := SyntaxProblem(name, err)
		p.Hint = lockHint
		return nil, p
	}
	lines := indexLines(string(text))
	whole := Origin{File: name}
	for _, k := range md.Keys() {
		if !slices.Contains([]string{"version", "command", "command.name", "command.path", "command.sha256", "command.package", "command.version"}, k.String()) {
			return nil, problem(whole, lockHint, "unknown key %q", k.String())
		}
	}
	if doc.Version != 1 {
		return nil, problem(whole, lockHint, "version %d is not known", doc.Version)
	}
	for i := range doc.Command {
		c := &doc.Command[i]
		c.At = Origin{File: name, Line: lines.key(elementKey("command", i))}
		if why := c.check(); why != "" {
			return nil, problem(c.At, lockHint, "%s", why)
		}
		if slices.ContainsFunc(doc.Command[:i], func(d Locked) bool { return d.Name == c.Name }) {
			return nil, problem(c.At, lockHint, "%q is locked twice", c.Name)
		}
	}
	return doc.Command, nil
}

const lockHint = "`jail lock --update` writes the file anew"

func (c Locked) check() string {
	b, err := hex.DecodeString(c.SHA256)
	switch {
	case c.Name == "":
		return `[[command]] needs a "name"`
	case !path.IsAbs(c.Path) || path.Clean(c.Path) != c.Path:
		return `"` + c.Path + `" is no absolute path`
	case err != nil || len(b) != 32 || c.SHA256 != strings.ToLower(c.SHA256):
		return `"` + c.SHA256 + `" is no SHA-256 digest: 64 hexadecimal digits are expected`
	}
	return ""
}

// FormatLock writes a lock file, sorted by name.
func FormatLock(entries []Locked) ([]byte, error) {
	doc := lockDocument{Version: 1, Command: slices.Clone(entries)}
	slices.SortFunc(doc.Command, func(a, b Locked) int { return strings.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	out.WriteString("# Written by `jail lock`: what each allowed command was. `jail lock --update` renews it.\n")
	enc := toml.NewEncoder(&out)
	enc.Indent = ""
	err := enc.Encode(doc)
	return out.Bytes(), err
}

// addLock takes the lock file that lies beside a rule file. It speaks of the
// commands that this file allows.
func (m *merger) addLock(f *file) error {
	if f.Lock == nil {
		return nil
	}
	entries, err := ParseLock(f.LockName, f.Lock)
	if err != nil {
		return err
	}
	m.p.locks = append(m.p.locks, Lock{Name: f.LockName, Source: f.number, Entries: entries})
	return nil
}
