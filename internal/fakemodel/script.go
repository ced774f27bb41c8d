package fakemodel

// A Script is what the model says: its steps in order, then a last text.
type Script struct {
	Steps []Step
	Final string // the last answer; if empty, "done"
}

// A Step is one turn of the model: the tool calls that it makes at once.
type Step []Call

// A Call is one tool call, told by what it means. [Bash], [Read], [Write] and
// [Edit] make it; each request says in which words its agent wants it.
type Call struct {
	kind kind
	args map[meaning]string
}

// Bash runs a shell command.
func Bash(command string) Call {
	return Call{bash, map[meaning]string{toRun: command}}
}

// Read reads a file. Several agents want an absolute path, all of them take
// one.
func Read(path string) Call {
	return Call{read, map[meaning]string{inFile: path}}
}

// Write makes a file or replaces it as a whole.
func Write(path, content string) Call {
	return Call{write, map[meaning]string{inFile: path, whole: content}}
}

// Edit replaces a text in a file. Agents insist on having read it before.
func Edit(path, before, after string) Call {
	return Call{edit, map[meaning]string{inFile: path, oldText: before, newText: after}}
}

// final is the text of the last turn, never empty: agents ask again when a
// model answers nothing.
func (s Script) final() string {
	if s.Final == "" {
		return "done"
	}
	return s.Final
}
