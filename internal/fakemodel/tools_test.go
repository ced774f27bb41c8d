package fakemodel

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// offer is one tool, as a request would offer it.
func offer(t *testing.T, name, parameters string) []tool {
	t.Helper()
	one := tool{}
	one.Function.Name = name
	if err := json.Unmarshal([]byte(parameters), &one.Function.Parameters); err != nil {
		t.Fatal(err)
	}
	return []tool{one}
}

func TestFit(t *testing.T) {
	const text = `{"type":"string"}`
	for _, c := range []struct {
		tool, parameters string
		call             Call
		want             string
	}{
		{
			"bash", `{"properties":{"command":` + text + `,"timeout":{"type":"number"}},"required":["command"]}`,
			Bash("ls"), `{"command":"ls"}`,
		},
		{
			"run_shell_command", `{"properties":{"command":` + text + `,"is_background":{"type":"boolean"}},
			 "required":["command","is_background"]}`,
			Bash("ls"), `{"command":"ls","is_background":false}`,
		},
		{
			"Read", `{"properties":{"file_path":` + text + `,"limit":{"type":["number","null"]}},"required":["file_path"]}`,
			Read("/f"), `{"file_path":"/f"}`,
		},
		{
			"write_file", `{"properties":{"absolute_path":` + text + `,"content":` + text + `}}`,
			Write("/f", ""), `{"absolute_path":"/f","content":""}`,
		},
		{
			"edit", `{"properties":{"filePath":` + text + `,"oldString":` + text + `,"newString":` + text + `}}`,
			Edit("/f", "a", "b"), `{"filePath":"/f","newString":"b","oldString":"a"}`,
		},
		{
			"edit", `{"properties":{"path":` + text + `,"edits":{"type":"array","items":
			 {"properties":{"oldText":` + text + `,"newText":` + text + `},"required":["oldText","newText"]}}},
			 "required":["path","edits"]}`,
			Edit("/f", "a", "b"), `{"edits":[{"newText":"b","oldText":"a"}],"path":"/f"}`,
		},
		{
			"shell", `{"properties":{"cmd":` + text + `,"n":{"type":"integer"},"l":{"type":"array"},"o":{"type":"object"}},
			 "required":["n","l","o"]}`,
			Bash("ls"), `{"cmd":"ls","l":[],"n":0,"o":{}}`,
		},
	} {
		name, args, err := c.call.fit(offer(t, c.tool, c.parameters))
		if err != nil || name != c.tool {
			t.Errorf("%s: tool %q, error %v", c.tool, name, err)
		}
		if d := cmp.Diff(c.want, string(encode(args))); d != "" {
			t.Errorf("%s: %s", c.tool, d)
		}
	}
}

// TestFitWantsAPlaceForEverything: a tool of the right name that can't carry
// the call would do something else than the script says.
func TestFitWantsAPlaceForEverything(t *testing.T) {
	offered := offer(t, "edit", `{"properties":{"path":{"type":"string"},"patch":{"type":"string"}}}`)
	if name, args, err := Edit("/f", "a", "b").fit(offered); err == nil {
		t.Errorf("used %s with %v", name, args)
	}
}
