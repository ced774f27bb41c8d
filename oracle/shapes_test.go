package oracle_test

import (
	"path/filepath"
	"slices"
	"strings"
)

// shapes are what makes a scenario hard. A long run has to have met each.
func shapes() map[string]func(scenario) bool {
	return map[string]func(scenario) bool{
		"artifact":   func(s scenario) bool { return s.Artifact },
		"allow list": func(s scenario) bool { return s.has("commands.allow") },
		"odd name": func(s scenario) bool {
			return s.hasRule(func(u rule) bool { return strings.ContainsAny(filepath.Base(u.Path), " '*?[$#~\\{=") })
		},
		"rule by a link": func(s scenario) bool { return s.hasRule(func(u rule) bool { return s.hasNode("link", u.Path) }) },
		"write in exec":  func(s scenario) bool { return s.nested("files.exec", "files.write") },
		"exec in write":  func(s scenario) bool { return s.nested("files.write", "files.exec") },
		"reopened": func(s scenario) bool {
			return s.nested("files.hide", "files.read") || s.nested("files.hide", "files.write")
		},
		"reopened, for writing": func(s scenario) bool { return s.nested("files.protect", "files.write") },
		"carved in what is reopened": func(s scenario) bool {
			return s.nested("files.hide", "files.write", "files.protect") || s.nested("files.hide", "files.read", "files.hide")
		},
		"denied below a grant, below which is denied": func(s scenario) bool {
			return s.hasRule(func(g rule) bool {
				return strings.HasPrefix(g.Key, "files.") && s.under("files.exec", filepath.Dir(g.Path)) &&
					s.hasRule(func(u rule) bool { return u.Key == "commands.deny" && within(u.Path, g.Path) }) &&
					s.hasRule(func(u rule) bool {
						return u.Key == "commands.deny" && !within(u.Path, g.Path) && s.under("files.exec", u.Path)
					})
			})
		},
		"mount below a carve-out": func(s scenario) bool {
			return s.hasMount(func(n node) bool { return s.under("files.hide", filepath.Dir(n.Path)) })
		},
		"mount of a carve-out": func(s scenario) bool {
			return s.hasMount(func(n node) bool {
				return s.hasRule(func(u rule) bool { return u.Key == "files.hide" && within(u.Path, n.To) })
			})
		},
		"mount of a part of a write tree": func(s scenario) bool {
			return s.hasMount(func(n node) bool { return s.under("files.write", n.To) && !s.under("files.write", n.Path) })
		},
		"mount of a part of an exec tree": func(s scenario) bool {
			return s.hasMount(func(n node) bool { return s.under("files.exec", n.To) && !s.under("files.exec", n.Path) })
		},
		"mount beside what is denied": func(s scenario) bool {
			return s.has("commands.deny") && s.hasMount(func(n node) bool { return s.under("files.exec", n.To) || s.under("files.exec", n.Path) })
		},
		"mount of a file": func(s scenario) bool {
			return s.hasMount(func(n node) bool { return s.hasNode("file", n.To) })
		},
		"link out of a write tree": func(s scenario) bool {
			return slices.ContainsFunc(s.Nodes, func(n node) bool {
				return n.Kind == "hard" && s.under("files.write", n.To) != s.under("files.write", n.Path)
			})
		},
	}
}

func (s scenario) hasRule(f func(rule) bool) bool { return slices.ContainsFunc(s.Rules, f) }

func (s scenario) has(key string) bool {
	return s.hasRule(func(u rule) bool { return u.Key == key })
}

func (s scenario) hasNode(kind, path string) bool {
	return slices.ContainsFunc(s.Nodes, func(n node) bool { return n.Kind == kind && n.Path == path })
}

func (s scenario) hasMount(f func(node) bool) bool {
	return slices.ContainsFunc(s.Nodes, func(n node) bool { return n.Kind == "bind" && f(n) })
}

// under tells whether a path lies in what such a rule names.
func (s scenario) under(key, path string) bool {
	return s.hasRule(func(u rule) bool { return u.Key == key && within(path, u.Path) })
}

// nested tells whether there are rules of these kinds, each strictly in the one before.
func (s scenario) nested(keys ...string) bool {
	var below func(path string, keys []string) bool
	below = func(path string, keys []string) bool {
		return len(keys) == 0 || s.hasRule(func(u rule) bool {
			return u.Key == keys[0] && (path == "" || u.Path != path && within(u.Path, path)) && below(u.Path, keys[1:])
		})
	}
	return below("", keys)
}
