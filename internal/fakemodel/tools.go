package fakemodel

import (
	"fmt"
	"slices"
	"strings"
)

// A kind is what a tool does; its value is used in messages only.
type kind string

const (
	bash  kind = "bash"
	read  kind = "read"
	write kind = "write"
	edit  kind = "edit"
)

// A meaning is what a parameter stands for.
type meaning string

const (
	toRun   meaning = "command"
	inFile  meaning = "path"
	whole   meaning = "content"
	oldText meaning = "old text"
	newText meaning = "new text"
)

// kindOf and meaningOf know the spellings in use, all as plain makes them.
// A read tool can't be told from a list tool by its parameters, so tools go by
// name too.
func kindOf(tool string) kind {
	switch plain(tool) {
	case "bash", "shell", "shellcommand", "runshellcommand", "runcommand", "executecommand", "terminal":
		return bash
	case "read", "readfile", "view", "viewfile":
		return read
	case "write", "writefile", "createfile":
		return write
	case "edit", "editfile", "replace", "strreplace":
		return edit
	}
	return ""
}

func meaningOf(parameter string) meaning {
	switch plain(parameter) {
	case "command", "cmd", "script":
		return toRun
	case "path", "filepath", "absolutepath", "file", "filename":
		return inFile
	case "content", "contents", "text", "filetext":
		return whole
	case "old", "oldstring", "oldtext", "oldstr":
		return oldText
	case "new", "newstring", "newtext", "newstr":
		return newText
	}
	return ""
}

// plain makes filePath, file_path and FilePath one word.
func plain(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", ""))
}

// A tool is one of those that a request offers.
type tool struct {
	Function struct {
		Name       string `json:"name"`
		Parameters schema `json:"parameters"`
	} `json:"function"`
}

// A schema is the part of JSON Schema that tools are described with.
type schema struct {
	Type       any               `json:"type"` // a name or a list of names
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Items      *schema           `json:"items"`
}

// useful tells whether any tool can play a part in a script. Some agents offer
// a lone placeholder when they want a title or a summary.
func useful(offered []tool) bool {
	return slices.ContainsFunc(offered, func(t tool) bool { return kindOf(t.Function.Name) != "" })
}

// fit puts a call into the words of the tools on offer.
func (c Call) fit(offered []tool) (name string, args map[string]any, err error) {
	for _, t := range offered {
		if kindOf(t.Function.Name) != c.kind {
			continue
		}
		args, used := t.Function.Parameters.arguments(c.args)
		if used >= len(c.args) {
			return t.Function.Name, args, nil
		}
	}
	return "", nil, fmt.Errorf("no tool on offer can do %q", c.kind)
}

// arguments fills in what the parameters mean, and says how many of the
// meanings found a place.
func (s schema) arguments(want map[meaning]string) (args map[string]any, used int) {
	args = map[string]any{}
	for name, p := range s.Properties {
		value, n := p.value(meaningOf(name), want)
		if n == 0 && slices.Contains(s.Required, name) {
			value = p.filler()
		}
		if value != nil {
			args[name] = value
		}
		used += n
	}
	return args, used
}

// value is what one parameter gets; nil if the call says nothing about it. A
// list of objects is looked into: there are edit tools that take a list of
// replacements.
func (s schema) value(m meaning, want map[meaning]string) (value any, used int) {
	if text, ok := want[m]; ok {
		return text, 1
	}
	if s.Items == nil {
		return nil, 0
	}
	item, used := s.Items.arguments(want)
	if used == 0 {
		return nil, 0
	}
	return []any{item}, used
}

// filler is the value of a required parameter that no script cares about, such
// as the description of a command.
func (s schema) filler() any {
	switch s.Type {
	case "boolean":
		return false
	case "number", "integer":
		return 0
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return "scripted step"
}
