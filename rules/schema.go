package rules

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// Schema is the JSON Schema of rule files, made from the type that they are decoded
// into. It knows kinds of values, and the words where there are few; what paths and
// names have to look like is for Parse.
func Schema() ([]byte, error) {
	s := tableSchema(reflect.TypeFor[document](), "")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "rules for jail"
	return json.MarshalIndent(s, "", "  ")
}

type schema = map[string]any

// tableSchema is that of a table with the keys of a struct.
func tableSchema(t reflect.Type, prefix string) schema {
	keys := schema{}
	for i := range t.NumField() {
		name := t.Field(i).Tag.Get("toml")
		key := prefix + name
		if profileOnly(key) {
			continue
		}
		s := valueSchema(t.Field(i).Type, key)
		s["description"] = about()[key]
		maps.Copy(s, limitsOf(key))
		keys[name] = s
	}
	return schema{"type": "object", "properties": keys, "additionalProperties": false}
}

// profileOnly are the keys that only built-in profiles have.
func profileOnly(key string) bool { return key == "profile" || key == "seed" || key == "cache" }

func valueSchema(t reflect.Type, key string) schema {
	switch t.Kind() {
	case reflect.Pointer:
		return valueSchema(t.Elem(), key)
	case reflect.Struct:
		return tableSchema(t, key+".")
	case reflect.Slice:
		items := valueSchema(t.Elem(), key)
		maps.Copy(items, limitsOf(key+"[]"))
		return schema{"type": "array", "items": items}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": valueSchema(t.Elem(), key)}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Uint16:
		return schema{"type": "integer", "minimum": 0, "maximum": 65535}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer"}
	}
	return schema{} // anything: limitsOf says what
}

// limitsOf is what a schema says of a key, or of the elements of its list, beyond
// its type.
func limitsOf(key string) schema {
	name, _ := strings.CutPrefix(key, "artifact.")
	if strings.HasPrefix(name, "limits.") {
		return schema{"minimum": 1}
	}
	return map[string]schema{
		"version":            {"const": 1},
		"waive[]":            {"enum": WaiverNames()},
		"profiles[]":         {"enum": ProfileNames()},
		"artifact.run":       {"enum": []string{"seal", "deny"}},
		"artifact.libraries": {"enum": []string{"seal", "deny"}},
		"network.unix":       {"anyOf": []schema{{"const": "any"}, {"type": "array", "items": schema{"type": "string"}}}},
		"command[]":          {"required": []string{"name"}},
		"command.sha256":     {"pattern": "^[0-9a-f]{64}$"},
		"guide[]":            {"required": []string{"match", "message"}},
		"guide.status":       {"minimum": 0, "maximum": 255},
	}[key]
}
