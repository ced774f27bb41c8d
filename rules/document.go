package rules

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/BurntSushi/toml"
)

// document is a rule file as TOML spells it. A pointer, or md.IsDefined, tells
// an absent key from an empty one where that matters.
type document struct {
	Version  int      `toml:"version"`
	Profiles []string `toml:"profiles"`
	Waive    []string `toml:"waive"`
	Guard    *bool    `toml:"guard"`

	Files struct {
		Read    []string `toml:"read"`
		Write   []string `toml:"write"`
		Exec    []string `toml:"exec"`
		Create  []string `toml:"create"`
		Protect []string `toml:"protect"`
		Hide    []string `toml:"hide"`
	} `toml:"files"`

	Seed []struct {
		From string `toml:"from"`
		To   string `toml:"to"`
	} `toml:"seed"`

	Cache []struct {
		Dir      string `toml:"dir"`
		Variable string `toml:"variable"`
		Private  bool   `toml:"private"`
	} `toml:"cache"`

	Commands struct {
		Allow []string `toml:"allow"`
		Deny  []string `toml:"deny"`
	} `toml:"commands"`

	Command []struct {
		Name    string   `toml:"name"`
		Path    string   `toml:"path"`
		SHA256  string   `toml:"sha256"`
		Message string   `toml:"message"`
		Helpers []string `toml:"helpers"`
	} `toml:"command"`

	Guide []struct {
		Match   string `toml:"match"`
		Message string `toml:"message"`
		Status  *int   `toml:"status"`
	} `toml:"guide"`

	Artifact struct {
		Run       string   `toml:"run"`
		Libraries string   `toml:"libraries"`
		Network   *bool    `toml:"network"`
		Write     []string `toml:"write"`
		Deny      []string `toml:"deny"`
		Env       struct {
			Drop []string `toml:"drop"`
		} `toml:"env"`
		Limits limits `toml:"limits"`
	} `toml:"artifact"`

	Network struct {
		Connect    []uint16 `toml:"connect"`
		Bind       []uint16 `toml:"bind"`
		UDP        *bool    `toml:"udp"`
		Interfaces *bool    `toml:"interfaces"`
		Unix       any      `toml:"unix"`
	} `toml:"network"`

	Env struct {
		Pass []string          `toml:"pass"`
		Set  map[string]string `toml:"set"`
	} `toml:"env"`

	Limits limits `toml:"limits"`

	// Profile is for built-in profiles: what to say of them.
	Profile struct {
		About   string   `toml:"about"`
		Options []string `toml:"options"`
		Why     string   `toml:"why"`
		Agent   bool     `toml:"agent"` // what it grants is an agent's own
	} `toml:"profile"`
}

// limits is [limits] and [artifact.limits].
type limits struct {
	OpenFiles *int64 `toml:"open_files"`
	FileSize  *int64 `toml:"file_size"`
	CPU       *int64 `toml:"cpu"`
	Memory    *int64 `toml:"memory"`
}

// file is one decoded source with the lines of its keys.
type file struct {
	document
	Source
	number int
	lines  lineIndex
	md     toml.MetaData
}

// by tells whose rules the file holds.
func (f *file) by() By {
	switch {
	case f.Kind != Profile:
		return ByUser
	case f.document.Profile.Agent:
		return ByAgent
	}
	return ByToolchain
}

func (f *file) at(key string) Origin {
	return Origin{File: f.Name, Line: f.lines.key(key), Source: f.number}
}

func (f *file) elem(key string, i int) Origin {
	return Origin{File: f.Name, Line: f.lines.scalar(key, i), Source: f.number}
}

// decode reads TOML and refuses every key that is not spelled exactly as
// documented: toml matches names without case, so that "read" and "READ" would
// fill one field in random order.
func decode(src Source, number int) (*file, error) {
	f := &file{Source: src, number: number}
	md, err := toml.Decode(string(src.Text), &f.document)
	if err != nil {
		return nil, SyntaxProblem(src.Name, err)
	}
	f.md, f.lines = md, indexLines(string(src.Text))
	if f.lines.quoted != 0 {
		return nil, problem(Origin{File: src.Name, Line: f.lines.quoted, Source: number}, "", "no key needs quotes: write it bare")
	}
	// The toml package takes anything that is no table for an empty one there.
	if t := md.Type("env", "set"); t != "" && t != "Hash" {
		return nil, problem(f.anyLine("env.set"), `write set = { NAME = "value" }`, "env.set: a table is expected here")
	}
	known := knownKeys(reflect.TypeOf(f.document), "")
	for _, k := range md.Keys() {
		if err := f.checkKey(k, known); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *file) checkKey(k toml.Key, known []string) error {
	name := k.String()
	if len(k) == 3 && strings.HasPrefix(name, "env.set.") {
		return nil
	}
	for _, n := range known {
		if n == name {
			return nil
		}
	}
	hint := suggest(strings.ToLower(name), known, "the README lists every key")
	return problem(f.anyLine(name), hint, "unknown key %q", name)
}

// anyLine finds the line of a key whose place in an array of tables is not known.
func (f *file) anyLine(name string) Origin {
	o := f.at(name)
	for k, line := range f.lines.keys {
		if o.Line == 0 && withoutNumber(k) == name {
			o.Line = line
		}
	}
	return o
}

// withoutNumber makes "command[0].name" to "command.name".
func withoutNumber(k string) string {
	before, rest, _ := strings.Cut(k, "[")
	_, after, _ := strings.Cut(rest, "]")
	return before + after
}

// SyntaxProblem words an error of the toml package: where, which key, what.
func SyntaxProblem(name string, err error) *Problem {
	hint := "strings stand in quotes, lists in [ ]; `jail init` writes an example"
	at := Origin{File: name}
	text, key := strings.TrimPrefix(err.Error(), "toml: "), ""
	var pe toml.ParseError
	if errors.As(err, &pe) {
		at.Line, key = pe.Position.Line, pe.LastKey
		text = cmp.Or(pe.Message, text)
	} else if place, what, ok := strings.Cut(text, ": "); ok {
		// A wrong type is told in words only: line 3 (last key "files.read"): ...
		if n, _ := fmt.Sscanf(place, "line %d (last key %q)", &at.Line, &key); n == 2 {
			text = what
		}
	}
	switch {
	case key == "profile":
		hint = "did you mean profiles?"
	case strings.Contains(text, "already been defined"):
		hint = "a key or [table] stands once in a file: put its lines together"
	case strings.Contains(text, "is out of range"):
		hint = "" // the text says it
	}
	if key != "" {
		key += ": "
	}
	return problem(at, hint, "%s%s", key, plainTypes(text))
}

// plainTypes takes Go's names of types out of what the toml package says.
func plainTypes(text string) string {
	if strings.Contains(text, "type mismatch for ") && strings.Contains(text, "expected table") {
		return "a table is expected here"
	}
	return strings.NewReplacer(
		"incompatible types: TOML value has type ", "a value of type ", "; destination has type ", " stands where this is expected: ",
		"[]any", "list", "[]table", "list of tables", "int64", "integer", "float64", "number", "map[string]any", "table", "slice", "list",
		"range for uint16", "range for a port (0 to 65535)", "uint16", "port number",
	).Replace(text)
}

// knownKeys lists the dotted keys of a document type.
func knownKeys(t reflect.Type, prefix string) []string {
	var keys []string
	for i := range t.NumField() {
		name := prefix + t.Field(i).Tag.Get("toml")
		keys = append(keys, name)
		ft := t.Field(i).Type
		if ft.Kind() == reflect.Slice {
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Struct {
			keys = append(keys, knownKeys(ft, name+".")...)
		}
	}
	return keys
}
