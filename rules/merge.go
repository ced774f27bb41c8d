package rules

import (
	"encoding/hex"
	"slices"
	"strings"
)

// addNetwork: lists unite over the files that set them; of two booleans the
// stricter counts.
func (m *merger) addNetwork(f *file) error {
	n := &m.p.network
	for _, l := range []struct {
		key  string
		list []uint16
		into *Ports
	}{{"connect", f.Network.Connect, &n.Connect}, {"bind", f.Network.Bind, &n.Bind}} {
		if f.md.IsDefined("network", l.key) {
			l.into.Set = true
			l.into.List = append(l.into.List, l.list...)
			l.into.From = f.at("network." + l.key)
		}
	}
	m.stricter("udp", f.Network.UDP, &n.UDP)
	m.stricter("interfaces", f.Network.Interfaces, &n.Interfaces)
	return m.addUnix(f)
}

// stricter records that a file said false, which no other file undoes.
func (m *merger) stricter(name string, v *bool, into *bool) {
	if v == nil {
		return
	}
	if !*v {
		m.refused = append(m.refused, name)
	}
	*into = *v && !slices.Contains(m.refused, name)
}

func (m *merger) addUnix(f *file) error {
	at := f.at("network.unix")
	switch v := f.Network.Unix.(type) {
	case nil:
	case string:
		if v != "any" {
			return problem(at, `write unix = "any", or leave the key out`, "network.unix: %q is not known", v)
		}
		m.p.network.UnixAny = true
	case []any:
		for _, e := range v {
			if _, ok := e.(string); !ok {
				return problem(at, "", "network.unix: a list of paths is expected")
			}
		}
		return notYet(at, "network.unix as a list")
	default:
		return problem(at, "", `network.unix: "any" or a list of paths is expected`)
	}
	return nil
}

func (m *merger) addEnv(f *file) error {
	for i, text := range f.Env.Pass {
		if err := m.addPass(text, f.elem("env.pass", i)); err != nil {
			return err
		}
	}
	names := make([]string, 0, len(f.Env.Set))
	for name := range f.Env.Set {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := m.addSet(name, f.Env.Set[name], f.at("env.set."+name)); err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) addPass(text string, from Origin) error {
	if !isEnvName(strings.ReplaceAll(text, "*", "_")) {
		return problem(from, "", "%q is not the name of an environment variable, nor a pattern such as MY_*", text)
	}
	m.p.pass = append(m.p.pass, Pattern{Text: text, From: from})
	return nil
}

func (m *merger) addSet(name, value string, from Origin) error {
	if !isEnvName(name) {
		return problem(from, "", "%q is not the name of an environment variable", name)
	}
	if name == "TMPDIR" {
		return problem(from, "", "TMPDIR is private to each run and can't be set")
	}
	if strings.ContainsRune(value, 0) {
		return problem(from, "", "%s: the value has a NUL byte", name)
	}
	if strings.HasPrefix(value, "${") {
		if why := checkVariable(value); why != "" {
			return problem(from, "", "%s: %q: %s", name, value, why)
		}
	}
	for _, have := range m.p.set {
		if have.Name == name && have.Value.Text != value {
			return problem(from, "remove one of them", "%s is set to %q here and to %q at %s",
				name, value, have.Value.Text, have.From)
		}
	}
	m.p.set = append(m.p.set, Variable{Name: name, Value: Path{Text: value}, From: from})
	return nil
}

// addLimits keeps the lowest limit of each name.
func (m *merger) addLimits(f *file) error {
	for _, l := range []struct {
		name  string
		value *int64
		least int64 // with less no program starts
	}{
		{"open_files", f.Limits.OpenFiles, 16},
		{"file_size", f.Limits.FileSize, 1},
		{"cpu", f.Limits.CPU, 1},
		{"memory", f.Limits.Memory, 16 << 20},
	} {
		if l.value == nil {
			continue
		}
		from := f.at("limits." + l.name)
		if *l.value < l.least {
			return problem(from, "", "limits.%s: must be at least %d", l.name, l.least)
		}
		limit := Limit{Name: l.name, Value: uint64(*l.value), From: from}
		i := slices.IndexFunc(m.p.limits, func(have Limit) bool { return have.Name == l.name })
		switch {
		case i < 0:
			m.p.limits = append(m.p.limits, limit)
		case limit.Value < m.p.limits[i].Value:
			m.p.limits[i] = limit
		}
	}
	return nil
}

// addArtifact accepts run = "deny", which is what happens while no file that
// the jail wrote can be sealed; the rest of the table is checked, then refused.
func (m *merger) addArtifact(f *file) error {
	a := f.Artifact
	for _, c := range []struct{ key, value string }{{"run", a.Run}, {"libraries", a.Libraries}} {
		if f.md.IsDefined("artifact", c.key) && c.value != "seal" && c.value != "deny" {
			return problem(f.at("artifact."+c.key), `write "seal" or "deny"`, "artifact.%s: %q is not known", c.key, c.value)
		}
	}
	for i, text := range a.Write {
		if _, why := parsePath(text, false); why != "" {
			return problem(f.elem("artifact.write", i), "", "%q: %s", text, why)
		}
	}
	for _, key := range []string{"libraries", "network", "write", "deny", "env"} {
		if f.md.IsDefined("artifact", key) {
			return notYet(f.at("artifact."+key), "artifact."+key)
		}
	}
	if a.Run == "seal" {
		return notYet(f.at("artifact.run"), `artifact.run = "seal"`)
	}
	return nil
}

// checkLater validates the tables whose enforcement is not built yet, so that
// a mistake is found now, and then refuses them: a rule that is silently not
// enforced is worse than an error.
func checkLater(f *file) error {
	for i, g := range f.Guide {
		at := f.at(elementKey("guide", i))
		if strings.TrimSpace(g.Match) == "" || strings.TrimSpace(g.Message) == "" {
			return problem(at, "", `[[guide]] needs "match" and "message"`)
		}
		if g.Status < 0 || g.Status > 255 {
			return problem(at, "", "guide.status: %d is no exit status", g.Status)
		}
	}
	for _, k := range []string{"guide"} {
		if f.md.IsDefined(k) {
			return notYet(f.anyLine(k), k)
		}
	}
	return nil
}

func checkCommand(f *file, i int, name, digest string) error {
	table := elementKey("command", i)
	if name == "" {
		return problem(f.at(table), "", `[[command]] needs a "name"`)
	}
	if b, err := hex.DecodeString(digest); digest != "" && (err != nil || len(b) != 32) {
		return problem(f.at(table+".sha256"), "run sha256sum on the file",
			"%q is no SHA-256 digest: 64 hexadecimal digits are expected", digest)
	}
	return nil
}

func notYet(at Origin, what string) error {
	return problem(at, "this version of jail does not enforce it; remove it to go on without",
		"%s: not yet", what)
}
