package fakemodel

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tools is what an agent with opencode's spelling offers.
const tools = `[
 {"type":"function","function":{"name":"bash","parameters":{"type":"object","required":["command","description"],
  "properties":{"command":{"type":"string"},"description":{"type":"string"},"timeout":{"type":"number"}}}}},
 {"type":"function","function":{"name":"write","parameters":{"type":"object","required":["filePath","content"],
  "properties":{"filePath":{"type":"string"},"content":{"type":"string"}}}}}]`

func start(t *testing.T, s Script) *Server {
	t.Helper()
	srv, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	return srv
}

// an agent is the other side: it keeps the history, as real ones do.
type agent struct {
	t       *testing.T
	srv     *Server
	stream  bool
	history []any
}

// turn is what the agent understood of one answer.
type turn struct {
	Text, Finish string
	Calls        []toolCall
}

// ask sends the history and takes the answer into it.
func (a *agent) ask(tools string) turn {
	a.t.Helper()
	res := post(a.t, a.srv, object{
		"model": "fake", "stream": a.stream, "messages": a.history, "tools": json.RawMessage(tools),
	})
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		a.t.Fatalf("status %s", res.Status)
	}
	if a.stream {
		return readStream(a.t, res)
	}
	return readWhole(a.t, res)
}

// answer puts the calls of a turn and a result for each into the history.
func (a *agent) answer(t turn, text any) {
	a.history = append(a.history, object{"role": "assistant", "content": nil, "tool_calls": t.Calls})
	for _, c := range t.Calls {
		a.history = append(a.history, object{"role": "tool", "tool_call_id": c.ID, "content": text})
	}
}

func post(t *testing.T, srv *Server, body any) *http.Response {
	t.Helper()
	res, err := http.Post(srv.URL+"/chat/completions", "application/json", bytes.NewReader(encode(body)))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// delta is the same in a stream and in a whole message.
type delta struct {
	Content   string     `json:"content"`
	ToolCalls []toolCall `json:"tool_calls"`
}

type answer struct {
	Choices []struct {
		Delta   delta  `json:"delta"`
		Message delta  `json:"message"`
		Finish  string `json:"finish_reason"`
	} `json:"choices"`
	Usage object `json:"usage"`
}

func readWhole(t *testing.T, res *http.Response) turn {
	t.Helper()
	var a answer
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	c := a.Choices[0]
	return turn{c.Message.Content, c.Finish, c.Message.ToolCalls}
}

// readStream puts the pieces of a stream together and insists on its end.
func readStream(t *testing.T, res *http.Response) (got turn) {
	t.Helper()
	if ct := res.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("content type %q", ct)
	}
	usage, last := false, ""
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		last = data
		var a answer
		if data != "[DONE]" && json.Unmarshal([]byte(data), &a) != nil {
			t.Fatalf("no JSON: %q", data)
		}
		usage = usage || a.Usage != nil
		got.add(a)
	}
	if !usage || last != "[DONE]" {
		t.Errorf("usage sent: %v, last event %q", usage, last)
	}
	return got
}

func (got *turn) add(a answer) {
	for _, c := range a.Choices {
		got.Text += c.Delta.Content
		got.Finish += c.Finish
		for _, tc := range c.Delta.ToolCalls {
			if *tc.Index == len(got.Calls) {
				got.Calls = append(got.Calls, toolCall{ID: tc.ID, Type: tc.Type, Function: tc.Function})
				continue
			}
			got.Calls[*tc.Index].Function.Arguments += tc.Function.Arguments
		}
	}
}

func both(t *testing.T, f func(t *testing.T, stream bool)) {
	t.Run("whole", func(t *testing.T) { f(t, false) })
	t.Run("stream", func(t *testing.T) { f(t, true) })
}

func TestPlaysTheScript(t *testing.T) {
	both(t, func(t *testing.T, stream bool) {
		srv := start(t, Script{
			Steps: []Step{{Bash("ls"), Write("/a/b", "text\n")}, {Bash("exit 3")}},
			Final: "the end",
		})
		a := &agent{t: t, srv: srv, stream: stream}

		first := a.ask(tools)
		want := turn{Finish: "tool_calls", Calls: []toolCall{
			{ID: "call_0_0", Type: "function", Function: function{"bash", `{"command":"ls","description":"scripted step"}`}},
			{ID: "call_0_1", Type: "function", Function: function{"write", `{"content":"text\n","filePath":"/a/b"}`}},
		}}
		if d := cmp.Diff(want, first); d != "" {
			t.Fatal(d)
		}
		a.answer(first, "ok")
		second := a.ask(tools)
		a.answer(second, []object{{"type": "text", "text": "in"}, {"type": "text", "text": "parts"}})
		if srv.Done() {
			t.Error("done before the last answer was asked for")
		}
		if d := cmp.Diff(turn{Text: "the end", Finish: "stop"}, a.ask(tools)); d != "" {
			t.Error(d)
		}
		results := []Result{{0, "bash", "ok"}, {0, "write", "ok"}, {1, "bash", "in\nparts"}}
		if d := cmp.Diff(results, srv.Results()); d != "" || !srv.Done() {
			t.Errorf("done %v, results %s", srv.Done(), d)
		}
	})
}

func TestSideRequestsUseNoStep(t *testing.T) {
	both(t, func(t *testing.T, stream bool) {
		srv := start(t, Script{Steps: []Step{{Bash("ls")}}})
		a := &agent{t: t, srv: srv, stream: stream}
		placeholder := `[{"type":"function","function":{"name":"_noop","parameters":{"type":"object"}}}]`
		for _, offered := range []string{"null", "[]", placeholder} {
			if d := cmp.Diff(turn{Text: aside, Finish: "stop"}, a.ask(offered)); d != "" {
				t.Error(d)
			}
		}
		if got := a.ask(tools); len(got.Calls) != 1 || got.Calls[0].ID != "call_0_0" {
			t.Errorf("first step after side requests: %+v", got)
		}
	})
}

func TestRepeatedRequestsRepeatTheStep(t *testing.T) {
	srv := start(t, Script{Steps: []Step{{Bash("a")}, {Bash("b")}}})
	a := &agent{t: t, srv: srv}
	if d := cmp.Diff(a.ask(tools), a.ask(tools)); d != "" {
		t.Error(d)
	}
}

func TestTheFirstResultCounts(t *testing.T) {
	srv := start(t, Script{Steps: []Step{{Bash("a")}}})
	a := &agent{t: t, srv: srv}
	first := a.ask(tools)
	a.answer(first, "what it said")
	a.ask(tools)
	a.history = nil
	a.answer(first, "[cleared]")
	if got := a.ask(tools).Text; got != "done" {
		t.Errorf("final text %q", got)
	}
	if d := cmp.Diff([]Result{{0, "bash", "what it said"}}, srv.Results()); d != "" {
		t.Error(d)
	}
}

func TestRefusals(t *testing.T) {
	for name, body := range map[string]any{
		"no such tool": object{"tools": json.RawMessage(tools)},
		"no request":   "text",
	} {
		t.Run(name, func(t *testing.T) {
			res := post(t, start(t, Script{Steps: []Step{{Read("/etc/passwd")}}}), body)
			defer res.Body.Close()
			var got struct{ Error struct{ Message string } }
			if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != http.StatusBadRequest || got.Error.Message == "" {
				t.Errorf("%s, %+v", res.Status, got)
			}
		})
	}
}

func TestModels(t *testing.T) {
	res, err := http.Get(start(t, Script{}).URL + "/models")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got struct{ Data []struct{ ID string } }
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 1 || got.Data[0].ID != "fake" {
		t.Errorf("%+v", got)
	}
}

func TestCloseEndsTheServer(t *testing.T) {
	srv := start(t, Script{})
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := http.Get(srv.URL + "/models"); err == nil {
		t.Error("still answers")
	}
}
