package advice

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"jail/plan"
)

// Rule is one element of a list in a rule file.
type Rule struct {
	Table string `json:"table"` // "files", "network"
	Key   string `json:"key"`   // "write"
	Value string `json:"value"` // as TOML
}

// String is the rule as a line of its own.
func (r Rule) String() string {
	value := r.Value
	if value != "true" && !strings.HasPrefix(value, `"seal`) {
		value = "[" + value + "]"
	}
	return fmt.Sprintf("[%s] %s = %s", r.Table, r.Key, value)
}

// quote writes a TOML string.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// grant is the rule that would allow an access; ok is false when none is to be
// recommended.
func (p Places) grant(name string, want plan.Access) (Rule, bool) {
	key, dir := "read", ""
	switch {
	case p.Secret(name), unwritable(name):
		return Rule{}, false
	case want&plan.Exec != 0:
		key, dir = "exec", p.tool(name)
	case want&plan.Write != 0:
		key, dir = p.writing(name)
	default:
		dir = p.reading(name)
	}
	if dir == "" {
		return Rule{}, false
	}
	return Rule{"files", key, quote(p.write(dir))}, true
}

// tool is a directory of programs, or the program alone.
func (p Places) tool(name string) string {
	dir := filepath.Dir(name)
	if slices.Contains([]string{"bin", "sbin", "libexec"}, filepath.Base(dir)) && !p.tooWide(dir) {
		return dir
	}
	return name
}

func (p Places) reading(name string) string {
	if within(name, p.Root) {
		return p.Root
	}
	if unit, ok := p.Unit(name); ok && isDir(unit) {
		return unit
	}
	if isDir(name) && p.tooWide(name) {
		return ""
	}
	return name
}

// writing prefers the program's own directory, since files are replaced by being
// renamed, for which the directory must be writable; it is created if it has to be.
func (p Places) writing(name string) (key, dir string) {
	unit, ok := p.Unit(name)
	switch _, err := os.Lstat(name); {
	case within(name, p.Root):
		return "write", p.Root
	case ok && isDir(unit):
		return "write", unit
	case ok && unit != name:
		return "create", unit
	case err == nil && !(isDir(name) && p.tooWide(name)):
		return "write", name
	}
	if dir := filepath.Dir(name); isDir(dir) && !p.tooWide(dir) {
		return "write", dir
	}
	return "", ""
}

func isFile(name string) bool {
	fi, err := os.Stat(name)
	return err == nil && fi.Mode().IsRegular()
}

func isDir(name string) bool {
	fi, err := os.Stat(name)
	return err == nil && fi.IsDir()
}

// address is the rule for a connection, or for a port of one's own.
func address(to string, bind bool) (Rule, bool) {
	if unwritable(to) {
		return Rule{}, false
	}
	if path, ok := strings.CutPrefix(to, "unix:/"); ok && !bind {
		return Rule{"network", "unix", quote("/" + path)}, true
	}
	port, ok := strings.CutPrefix(to, "tcp:")
	if _, err := strconv.Atoi(port); !ok || err != nil {
		return Rule{}, false
	}
	if bind {
		return Rule{"network", "bind", port}, true
	}
	return Rule{"network", "connect", port}, true
}

// Merge writes rules as a piece of a rule file: each list once. What may be
// written may be read, so it is not named twice.
func Merge(rules []Rule) string {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool {
		return r.Key == "read" && slices.ContainsFunc(rules, func(w Rule) bool {
			return (w.Key == "write" || w.Key == "create") && (w.Value == r.Value || strings.HasPrefix(r.Value, strings.TrimSuffix(w.Value, `"`)+"/"))
		})
	})
	var tables []string
	keys, values := map[string][]string{}, map[string][]string{}
	for _, r := range rules {
		if !slices.Contains(tables, r.Table) {
			tables = append(tables, r.Table)
		}
		if !slices.Contains(keys[r.Table], r.Key) {
			keys[r.Table] = append(keys[r.Table], r.Key)
		}
		if k := r.Table + "." + r.Key; !slices.Contains(values[k], r.Value) {
			values[k] = append(values[k], r.Value)
		}
	}
	var b strings.Builder
	for _, t := range tables {
		fmt.Fprintf(&b, "[%s]\n", t)
		for _, k := range keys[t] {
			list := strings.Join(values[t+"."+k], ", ")
			fmt.Fprintln(&b, strings.TrimPrefix(Rule{t, k, list}.String(), "["+t+"] "))
		}
	}
	return b.String()
}
