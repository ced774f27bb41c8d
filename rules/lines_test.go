package rules

import (
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
)

// Lines of list elements and keys in all spellings of TOML.
func TestIndexLines(t *testing.T) {
	const q3, s3 = `"""`, `'''`
	for _, tt := range []struct {
		name, text string
		keys       map[string]int
		scalars    map[string][]int
	}{
		{
			"one line", "a = ['x', 'y']\nb = 1",
			map[string]int{"a": 1, "b": 2},
			map[string][]int{"a": {1, 1}, "b": {2}},
		},
		{
			"several lines, comments, a last comma", "# ]\n[files] # [x]\nread = [ # \"\n  'x', # ]\n\n  # 'no'\n  \"y\",\n]\nexec=['z']",
			map[string]int{"files": 2, "files.read": 3, "files.exec": 9},
			map[string][]int{"files.read": {4, 7}, "files.exec": {9}},
		},
		{
			"dotted keys", "files.read = ['x']\nfiles . 'write' = [\n\"y\"]\n[env]\nset.A = '1'",
			map[string]int{"files.read": 1, "files.write": 2, "env": 4, "env.set.A": 5},
			map[string][]int{"files.read": {1}, "files.write": {3}, "env.set.A": {5}},
		},
		{
			"inline tables", "env = { pass = ['A',\n'B'], set = { X = '1', \"Y\" = '2' } }\nlimits = {cpu=1}",
			map[string]int{"env": 1, "env.pass": 1, "env.set": 2, "env.set.X": 2, "env.set.Y": 2, "limits": 3, "limits.cpu": 3},
			map[string][]int{"env.pass": {1, 2}, "env.set.X": {2}, "env.set.Y": {2}, "limits.cpu": {3}},
		},
		{
			"literal strings", "a = ['\\', 'b\"', ',]']\nb = '#'",
			map[string]int{"a": 1, "b": 2},
			map[string][]int{"a": {1, 1, 1}, "b": {2}},
		},
		{
			"escapes", "a = [\"\\\"]\", \"\\\\\",\n\"\\u0022\"]\nb = 1",
			map[string]int{"a": 1, "b": 3},
			map[string][]int{"a": {1, 1, 2}, "b": {3}},
		},
		{
			"multi-line strings", "a = [" + q3 + "x\n]\n\\\"" + q3 + ",\n" + s3 + "\n'y''\n" + s3 + ", 'z']\nb = " + q3 + "x\"\"" + q3 + "\nc = " + s3 + "''" + s3 + "\nd = 1",
			map[string]int{"a": 1, "b": 7, "c": 8, "d": 9},
			map[string][]int{"a": {1, 4, 6}, "b": {7}, "c": {8}, "d": {9}},
		},
		{
			"empty strings", "a = ['', \"\"]\nb = [\n" + q3 + q3 + ",\n" + s3 + s3 + "]\nc=1",
			map[string]int{"a": 1, "b": 2, "c": 5},
			map[string][]int{"a": {1, 1}, "b": {3, 4}, "c": {5}},
		},
		{
			"arrays of tables", "[[command]]\nname = 'a'\n\n[[command]]\nname = 'b'\nhelpers = [\n'c']\n[[ guide ]]\nmatch = 'd'",
			map[string]int{
				"command[0]": 1, "command[0].name": 2, "command[1]": 4, "command[1].name": 5, "command[1].helpers": 6,
				"guide[0]": 8, "guide[0].match": 9,
			},
			map[string][]int{"command[0].name": {2}, "command[1].name": {5}, "command[1].helpers": {7}, "guide[0].match": {9}},
		},
		{
			"line ends", "a = [\r\n'x',\r\n'y']\r\nb = 1\r\n[c]\r\nd = true",
			map[string]int{"a": 1, "b": 4, "c": 5, "c.d": 6},
			map[string][]int{"a": {2, 3}, "b": {4}, "c.d": {6}},
		},
		{
			"numbers and dates", "a = [1, -2_0,\n0xff, 1e3]\nb = 1979-05-27 07:32:00\nc = [true,\nfalse]",
			map[string]int{"a": 1, "b": 3, "c": 4},
			map[string][]int{"a": {1, 1, 2, 2}, "b": {3}, "c": {4, 5}},
		},
		{
			"nested tables", "[artifact]\n[artifact.env]\ndrop = ['A']\n[ artifact . 'x' ]\ny = 1",
			map[string]int{"artifact": 1, "artifact.env": 2, "artifact.env.drop": 3, "artifact.x": 4, "artifact.x.y": 5},
			map[string][]int{"artifact.env.drop": {3}, "artifact.x.y": {5}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var any map[string]any
			if _, err := toml.Decode(tt.text, &any); err != nil {
				t.Fatalf("the test's own text: %v", err)
			}
			x := indexLines(tt.text)
			if d := cmp.Diff(tt.keys, x.keys); d != "" {
				t.Errorf("keys:\n%s", d)
			}
			if d := cmp.Diff(tt.scalars, x.scalars); d != "" {
				t.Errorf("scalars:\n%s", d)
			}
		})
	}
}

// Spellings that a person may use and for which an error must have a line too.
func TestEveryProblemHasALine(t *testing.T) {
	for name, text := range map[string]string{
		"escape in a key":        "[files]\n\"re\\u0061d\" = ['*']",
		"inline array of tables": "\nguide = [{ match = 'x' }]",
		"implicit table":         "\ncommands.allow = []",
		"quoted dot":             "\n\"files.read\" = []",
		"byte order mark":        "\ufeffwaive = ['x']",
		"quote in a key":         "\nenv.set.\"'A'\" = 'x'",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(Input{Sources: []Source{{Kind: RulesFile, Name: "f", Text: []byte(text)}}})
			p, ok := err.(*Problem)
			if !ok || p.At.Line == 0 {
				t.Errorf("%q: want an error with a line, got %v", text, err)
			}
		})
	}
}
