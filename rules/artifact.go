package rules

import (
	"fmt"
	"slices"
	"strings"
)

// Artifact says what becomes of files that the jail wrote and then executes, or
// maps as a library.
type Artifact struct {
	// Run and Libraries: nobody has said "deny".
	Run, Libraries Choice
	// Asked is where the first "seal" is written out.
	Asked Origin
	// Network false refuses internet sockets to artifacts.
	Network Choice
	// Write is what artifacts may write, of what the jail may write; if no file
	// says it, the project tree, TMPDIR and caches.
	Write    []Grant
	WriteSet bool
	Deny     []ArtifactPattern // never sealed
	Drop     []Pattern         // environment variables that artifacts do not get
	Limits   []Limit
}

// Choice is a switch with the rule that decided it, if there was one.
type Choice struct {
	Off  bool
	From Origin
}

// ArtifactPattern is a pattern of paths.
type ArtifactPattern struct {
	Path Path
	From Origin
}

// Guide is advice at execve: a command that begins with Match prints Message and
// ends with Status.
type Guide struct {
	Match   []string
	Message string
	Status  int
	From    Origin
}

// Artifact returns the merged rules for artifacts.
func (p Policy) Artifact() Artifact { return p.artifact }

// Guides returns the advice, as written.
func (p Policy) Guides() []Guide { return slices.Clone(p.guides) }

// addArtifact merges the table: deny beats seal, the stricter switch and the
// lower limit win, lists are united.
func (m *merger) addArtifact(f *file) error {
	a := &m.p.artifact
	for _, c := range []struct {
		key, value string
		into       *Choice
	}{{"run", f.Artifact.Run, &a.Run}, {"libraries", f.Artifact.Libraries, &a.Libraries}} {
		from := f.at("artifact." + c.key)
		switch {
		case !f.md.IsDefined("artifact", c.key):
		case c.value == "deny":
			c.into.deny(from)
		case c.value != "seal":
			return problem(from, `write "seal" or "deny"`, "artifact.%s: %q is not known", c.key, c.value)
		case a.Asked == (Origin{}):
			a.Asked = from
		}
	}
	if n := f.Artifact.Network; n != nil && !*n {
		a.Network.deny(f.at("artifact.network"))
	}
	if err := m.addArtifactPaths(f); err != nil {
		return err
	}
	for i, text := range f.Artifact.Env.Drop {
		from := f.elem("artifact.env.drop", i)
		if !isEnvName(strings.ReplaceAll(text, "*", "_")) {
			return problem(from, "", "%q is not the name of an environment variable, nor a pattern such as *_TOKEN", text)
		}
		a.Drop = append(a.Drop, Pattern{Text: text, From: from})
	}
	return mergeLimits(f, "artifact.limits", f.Artifact.Limits, &a.Limits)
}

// deny is what the first rule that says it has decided.
func (c *Choice) deny(from Origin) {
	if !c.Off {
		*c = Choice{Off: true, From: from}
	}
}

func (m *merger) addArtifactPaths(f *file) error {
	a := &m.p.artifact
	a.WriteSet = a.WriteSet || f.md.IsDefined("artifact", "write")
	for i, text := range f.Artifact.Write {
		from := f.elem("artifact.write", i)
		path, why := parsePath(text, false)
		if why != "" {
			return problem(from, "", "%q: %s", text, why)
		}
		a.Write = append(a.Write, Grant{Path: path, Access: Write, From: from})
	}
	for i, text := range f.Artifact.Deny {
		from := f.elem("artifact.deny", i)
		path, why := parsePath(text, true)
		if why != "" {
			return problem(from, "", "%q: %s", text, why)
		}
		a.Deny = append(a.Deny, ArtifactPattern{Path: path, From: from})
	}
	return nil
}

// guideStatus is what advised commands end with: found, but not executed.
const guideStatus = 126

func (m *merger) addGuides(f *file) error {
	for i, g := range f.Guide {
		at := f.at(fmt.Sprintf("guide[%d]", i))
		words := strings.Fields(g.Match)
		switch {
		case len(words) == 0 || strings.TrimSpace(g.Message) == "":
			return problem(at, "", `[[guide]] needs "match" and "message"`)
		case strings.Contains(words[0], "/"):
			return problem(at, "write the program's name alone: it is compared with the name of what really runs", "guide.match: %q is a path", words[0])
		case g.Status != nil && (*g.Status < 0 || *g.Status > 255):
			return problem(at, "", "guide.status: %d is no exit status", *g.Status)
		}
		guide := Guide{Match: words, Message: g.Message, Status: guideStatus, From: at}
		if g.Status != nil {
			guide.Status = *g.Status
		}
		m.p.guides = append(m.p.guides, guide)
	}
	return nil
}
