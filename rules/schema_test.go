package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
)

// Every key of a rule file is described, and nothing else is.
func TestDescribed(t *testing.T) {
	var want []string
	for _, key := range knownKeys(reflect.TypeFor[document](), "") {
		top, _, _ := strings.Cut(key, ".")
		if !profileOnly(top) {
			want = append(want, key)
		}
	}
	slices.Sort(want)
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(about()))); d != "" {
		t.Error(d)
	}
	for key, text := range about() {
		if text == "" || strings.HasSuffix(text, ".") {
			t.Errorf("%s: %q", key, text)
		}
	}
}

func readSchema(t *testing.T) map[string]any {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON is a rule file as a validator sees it.
func asJSON(t *testing.T, text string) (v any) {
	t.Helper()
	var table map[string]any
	if _, err := toml.Decode(text, &table); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	j, err := json.Marshal(table)
	if err == nil {
		err = json.Unmarshal(j, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Every example and profile is valid, the README's and the template's too.
func TestSchemaTakes(t *testing.T) {
	s := readSchema(t)
	files, err := filepath.Glob("../examples/*.toml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%q %v", files, err)
	}
	texts := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		texts[fmt.Sprintf("README %d", i)] = strings.ReplaceAll(block[1], "9f2c...", strings.Repeat("9f2c", 16))
	}
	for name, text := range texts {
		if why := invalid(s, asJSON(t, text), ""); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
	for _, name := range ProfileNames() {
		text, _ := ProfileText(name)
		v := asJSON(t, text).(map[string]any)
		for _, key := range []string{"profile", "seed", "cache"} {
			if v[key] != nil && invalid(s, v, "") == "" {
				t.Errorf("%s: %q is for profiles only, and taken", name, key)
			}
			delete(v, key)
		}
		if why := invalid(s, v, ""); why != "" {
			t.Errorf("profile %s: %s", name, why)
		}
	}
}

// What Parse refuses for its kind or its words, the schema refuses.
func TestSchemaRefuses(t *testing.T) {
	s := readSchema(t)
	for _, text := range []string{
		"version = 2", "reed = []", "files.read = 'a'", "files.reed = ['a']", "files.Read = ['a']", "files = ['a']", "waive = ['everything']", "profiles = ['nothing']",
		"guard = 1", "[[command]]\nsha256 = '" + strings.Repeat("a", 64) + "'", "[[command]]\nname = 'a'\nsha256 = 'abc'", "command.name = 'a'",
		"[[guide]]\nmatch = 'a'", "[[guide]]\nmatch = 'a'\nmessage = 'm'\nstatus = 256", "artifact.run = 'yes'", "artifact.limits.cpu = 0", "limits.memory = '1G'",
		"network.connect = [65536]", "network.connect = [-1]", "network.unix = 'all'", "network.unix = [1]", "env.set.A = 1", "env.pass = 'A'", "[[seed]]\nfrom = 'a'\nto = 'b'",
	} {
		if invalid(s, asJSON(t, text), "") == "" {
			t.Errorf("the schema takes %q", text)
		}
		if _, err := Parse(Input{Sources: []Source{{Kind: RulesFile, Name: "f", Text: []byte(text)}}}); err == nil {
			t.Errorf("Parse takes %q", text)
		}
	}
}

// invalid says why a value is not what a schema wants. It knows what Schema uses,
// and no other word.
func invalid(s map[string]any, v any, at string) string {
	for word, want := range s {
		if why := violates(s, word, want, v, at); why != "" {
			return fmt.Sprintf("%s %s", at, why)
		}
	}
	return ""
}

func violates(s map[string]any, word string, want, v any, at string) string {
	switch word {
	case "$schema", "title", "description":
	case "type":
		kind := map[string]string{"map[string]interface {}": "object", "[]interface {}": "array", "string": "string", "bool": "boolean", "float64": "integer"}[fmt.Sprintf("%T", v)]
		if kind != want {
			return fmt.Sprintf("is %s, not %s", kind, want)
		}
	case "const":
		if v != want {
			return fmt.Sprintf("is not %v", want)
		}
	case "enum":
		if !slices.Contains(want.([]any), v) {
			return fmt.Sprintf("is %v, not one of %v", v, want)
		}
	case "pattern":
		if text, ok := v.(string); ok && !regexp.MustCompile(want.(string)).MatchString(text) {
			return "does not match"
		}
	case "minimum", "maximum":
		if n, ok := v.(float64); ok && (word == "minimum" && n < want.(float64) || word == "maximum" && n > want.(float64)) {
			return fmt.Sprintf("is beyond %v", want)
		}
	case "items":
		list, _ := v.([]any)
		for i, e := range list {
			if why := invalid(want.(map[string]any), e, fmt.Sprintf("%s[%d]", at, i)); why != "" {
				return why
			}
		}
	case "anyOf":
		if !slices.ContainsFunc(want.([]any), func(one any) bool { return invalid(one.(map[string]any), v, at) == "" }) {
			return "is none of these"
		}
	default:
		return violatesTable(s, word, want, v, at)
	}
	return ""
}

func violatesTable(s map[string]any, word string, want, v any, at string) string {
	table, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	keys, _ := s["properties"].(map[string]any)
	switch word {
	case "required":
		for _, key := range want.([]any) {
			if table[key.(string)] == nil {
				return fmt.Sprintf("lacks %s", key)
			}
		}
	case "properties":
		for key, one := range keys {
			if value, ok := table[key]; ok {
				if why := invalid(one.(map[string]any), value, at+"."+key); why != "" {
					return why
				}
			}
		}
	case "additionalProperties":
		for key, value := range table {
			if keys[key] != nil {
				continue
			}
			one, ok := want.(map[string]any)
			if !ok {
				return fmt.Sprintf("has no %s", key)
			}
			if why := invalid(one, value, at+"."+key); why != "" {
				return why
			}
		}
	default:
		return "the schema has a word that this test does not know: " + word
	}
	return ""
}
