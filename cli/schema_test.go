package cli

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fields lists the JSON fields of a type, with the way to them.
func fields(t reflect.Type, way string) []string {
	var out []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		out = append(out, way+name)
		inner, way := f.Type, way+name+"."
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
			if inner.Kind() == reflect.Slice {
				way = strings.TrimSuffix(way, ".") + "[]."
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			out = append(out, fields(inner, way)...)
		}
	}
	return out
}

// docs/check.md has every field of the two reports, and no other.
func TestSchemaIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	check, attack, ok := strings.Cut(string(text), "\n## jail doctor --attack --json\n")
	if !ok {
		t.Fatal("docs/check.md has no part on jail doctor --attack --json")
	}
	for _, tt := range []struct {
		name, text string
		report     any
	}{{"check", check, report{}}, {"doctor --attack", attack, attackReport{}}} {
		var written []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(tt.text, -1) {
			written = append(written, m[1])
		}
		have := fields(reflect.TypeOf(tt.report), "")
		slices.Sort(have)
		slices.Sort(written)
		if d := cmp.Diff(have, written); d != "" {
			t.Errorf("%s --json: fields, and what docs/check.md has:\n%s", tt.name, d)
		}
	}
}
