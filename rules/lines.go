package rules

import (
	"strconv"
	"strings"
)

// lineIndex knows the line of every key and of every scalar in a TOML text
// that the toml package has already accepted. The toml package reports lines
// for its own errors only; ours must point at the very element of a list.
//
// Keys are dotted, an element of an array of tables has its number in
// brackets: "files.read", "command[0].name".
type lineIndex struct {
	keys    map[string]int
	scalars map[string][]int
	quoted  int // the line of the first key that needs quotes, 0 if there is none
}

// key is the line where key k is written, or the first one below it (the table
// of "a.b = 1" is written nowhere); 0 if there is none.
func (x lineIndex) key(k string) int {
	if line, ok := x.keys[k]; ok {
		return line
	}
	first := 0
	for name, line := range x.keys {
		if rest, ok := strings.CutPrefix(name, k); ok && (rest[0] == '.' || rest[0] == '[') && (first == 0 || line < first) {
			first = line
		}
	}
	return first
}

// scalar is the line of the i-th scalar below key k, or the line of the key.
func (x lineIndex) scalar(k string, i int) int {
	if s := x.scalars[k]; i < len(s) {
		return s[i]
	}
	return x.key(k)
}

// elementKey names the i-th table of an array.
func elementKey(array string, i int) string { return array + "[" + strconv.Itoa(i) + "]" }

func indexLines(text string) lineIndex {
	text = strings.TrimPrefix(text, "\ufeff") // the toml package passes over it too
	s := scanner{text: text, line: 1, tables: map[string]int{}, x: lineIndex{
		keys: map[string]int{}, scalars: map[string][]int{},
	}}
	prefix := ""
	for s.space(); s.pos < len(s.text); s.space() {
		start := s.pos
		if s.peek() == '[' {
			prefix = s.header()
		} else {
			s.pair(prefix)
		}
		if s.pos == start { // not TOML after all: never spin
			s.next()
		}
	}
	return s.x
}

type scanner struct {
	text   string
	pos    int
	line   int
	tables map[string]int
	x      lineIndex
}

func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *scanner) next() {
	if s.peek() == '\n' {
		s.line++
	}
	if s.pos < len(s.text) {
		s.pos++
	}
}

// space passes over white space, line ends and comments.
func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch c := s.peek(); {
		case c == '#':
			for s.pos < len(s.text) && s.peek() != '\n' {
				s.next()
			}
		case strings.IndexByte(" \t\r\n", c) >= 0:
			s.next()
		default:
			return
		}
	}
}

// header reads "[name]" or "[[name]]" and returns the prefix of what follows.
func (s *scanner) header() string {
	s.next()
	array := s.peek() == '['
	if array {
		s.next()
	}
	line := s.line
	name, bare := s.name()
	for s.peek() == ']' || s.peek() == ' ' || s.peek() == '\t' {
		s.next()
	}
	if array {
		n := s.tables[name]
		s.tables[name]++
		name += "[" + strconv.Itoa(n) + "]"
	}
	s.note(name, line, bare)
	return name + "."
}

// name reads a dotted key. One that needs its quotes (for a dot, an escape) is
// not bare: no key of ours does, and decode refuses it.
func (s *scanner) name() (name string, bare bool) {
	var b strings.Builder
	bare = true
	for s.pos < len(s.text) {
		switch c := s.peek(); {
		case c == '"' || c == '\'':
			word := strings.Trim(s.quoted(), string(c))
			bare = bare && isBare(word)
			b.WriteString(word)
		case c == ' ' || c == '\t':
			s.next()
		case strings.IndexByte("=]\n", c) >= 0:
			return b.String(), bare
		default:
			b.WriteByte(c)
			s.next()
		}
	}
	return b.String(), bare
}

// note keeps the line of a key, and of the first that needs its quotes. The
// names of variables below env.set are checked as values.
func (s *scanner) note(k string, line int, bare bool) {
	s.x.keys[k] = line
	if !bare && s.x.quoted == 0 && !strings.HasPrefix(k, "env.set.") {
		s.x.quoted = line
	}
}

// isBare tells whether a key could do without quotes.
func isBare(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", r)
	})
}

// pair reads "key = value".
func (s *scanner) pair(prefix string) {
	line := s.line
	name, bare := s.name()
	k := prefix + name
	s.note(k, line, bare)
	if s.peek() == '=' {
		s.next()
		s.value(k)
	}
}

func (s *scanner) value(k string) {
	s.space()
	switch c := s.peek(); c {
	case '[', '{':
		s.next()
		s.group(k, c == '{')
	case '"', '\'':
		s.x.scalars[k] = append(s.x.scalars[k], s.line)
		s.quoted()
	default:
		s.x.scalars[k] = append(s.x.scalars[k], s.line)
		for s.pos < len(s.text) && strings.IndexByte(",]}#\n", s.peek()) < 0 {
			s.next()
		}
	}
}

// group reads the inside of an array or an inline table. Tables in an array
// have numbers, as if each had a header of its own.
func (s *scanner) group(k string, table bool) {
	n := 0
	for s.space(); s.pos < len(s.text); s.space() {
		start := s.pos
		switch c := s.peek(); {
		case c == ']' || c == '}':
			s.next()
			return
		case c == ',':
			s.next()
		case table:
			s.pair(k + ".")
		case c == '{':
			element := k + "[" + strconv.Itoa(n) + "]"
			s.x.keys[element] = s.line
			n++
			s.value(element)
		default:
			s.value(k)
		}
		if s.pos == start {
			s.next()
		}
	}
}

// quoted passes over a string of any of TOML's four kinds and returns it as
// written.
func (s *scanner) quoted() string {
	start, q := s.pos, s.text[s.pos:s.pos+1]
	end := q
	if strings.HasPrefix(s.text[s.pos:], q+q+q) {
		end = q + q + q
	}
	s.pos += len(end)
	for s.pos < len(s.text) && !strings.HasPrefix(s.text[s.pos:], end) {
		if s.peek() == '\\' && q == `"` {
			s.next()
		}
		s.next()
	}
	// A multi-line string may end in up to two quotes of its own.
	for s.pos < len(s.text) && s.text[s.pos:s.pos+1] == q {
		s.pos++
		if len(end) == 1 {
			break
		}
	}
	return s.text[start:s.pos]
}
