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
		return m.addUnixPaths(f, v)
	default:
		return problem(at, "", `network.unix: "any" or a list of paths is expected`)
	}
	return nil
}

// addUnixPaths takes the sockets of the host that the jail may connect to.
func (m *merger) addUnixPaths(f *file, list []any) error {
	for i, e := range list {
		text, ok := e.(string)
		if !ok {
			return problem(f.at("network.unix"), "", "network.unix: a list of paths is expected")
		}
		from := f.elem("network.unix", i)
		path, why := parsePath(text, false)
		if why != "" {
			return problem(from, "", "%q: %s", text, why)
		}
		m.p.network.Unix = append(m.p.network.Unix, Grant{Path: path, From: from})
	}
	return nil
}

func (m *merger) addEnv(f *file) error {
	for i, text := range f.Env.Pass {
		if err := m.addPass(text, f.elem("env.pass", i), f.by()); err != nil {
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

func (m *merger) addPass(text string, from Origin, by By) error {
	if !isEnvName(strings.ReplaceAll(text, "*", "_")) {
		return problem(from, "", "%q is not the name of an environment variable, nor a pattern such as MY_*", text)
	}
	m.p.pass = append(m.p.pass, Pattern{Text: text, By: by, From: from})
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
	return mergeLimits(f, "limits", f.Limits, &m.p.limits)
}

func mergeLimits(f *file, table string, limits limits, into *[]Limit) error {
	for _, l := range []struct {
		name  string
		value *int64
		least int64 // with less no program starts
	}{
		{"open_files", limits.OpenFiles, 16},
		{"file_size", limits.FileSize, 1},
		{"cpu", limits.CPU, 1},
		{"memory", limits.Memory, 16 << 20},
	} {
		if l.value == nil {
			continue
		}
		from := f.at(table + "." + l.name)
		if *l.value < l.least {
			return problem(from, "", "%s.%s: must be at least %d", table, l.name, l.least)
		}
		limit := Limit{Name: l.name, Value: uint64(*l.value), From: from}
		i := slices.IndexFunc(*into, func(have Limit) bool { return have.Name == l.name })
		switch {
		case i < 0:
			*into = append(*into, limit)
		case limit.Value < (*into)[i].Value:
			(*into)[i] = limit
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
