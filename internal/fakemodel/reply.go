package fakemodel

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// A reply is one turn of the model: a text, or tool calls.
type reply struct {
	text  string
	calls []toolCall
}

func (r reply) finish() string {
	if len(r.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// object is a JSON object that is written once and read by nobody here.
type object = map[string]any

// usage is made up; agents compute with it and some fail without.
func usage() object {
	return object{"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
}

// envelope is what both kinds of answer have around them.
func envelope(model, kind string, choices ...object) object {
	if choices == nil {
		choices = []object{} // null would not do
	}
	return object{"id": "chatcmpl-script", "created": 1, "model": model, "object": kind, "choices": choices}
}

// send answers in one piece.
func (r reply) send(w http.ResponseWriter, model string) {
	msg := object{"role": "assistant", "content": r.text}
	if len(r.calls) > 0 {
		msg["tool_calls"] = r.calls
	}
	all := envelope(model, "chat.completion", object{"index": 0, "message": msg, "finish_reason": r.finish()})
	all["usage"] = usage()
	writeJSON(w, http.StatusOK, all)
}

// stream answers in server-sent events. A call comes in two pieces, name first
// and arguments next, as real servers cut it.
func (r reply) stream(w http.ResponseWriter, model string) {
	w.Header().Set("Content-Type", "text/event-stream")
	delta := func(d object, finish any) {
		event(w, envelope(model, "chat.completion.chunk", object{"index": 0, "delta": d, "finish_reason": finish}))
	}
	delta(object{"role": "assistant", "content": r.text}, nil)
	for i, c := range r.calls {
		args := c.Function.Arguments
		c.Index, c.Function.Arguments = &i, ""
		delta(object{"tool_calls": []toolCall{c}}, nil)
		delta(object{"tool_calls": []toolCall{{Index: &i, Function: function{Arguments: args}}}}, nil)
	}
	delta(object{}, r.finish())
	last := envelope(model, "chat.completion.chunk")
	last["usage"] = usage()
	event(w, last)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// event writes one event. An error means that the agent went away, and there
// is nobody left to tell.
func event(w http.ResponseWriter, v any) {
	fmt.Fprintf(w, "data: %s\n\n", encode(v))
	_ = http.NewResponseController(w).Flush()
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encode(v)) // the agent may be gone
}

// encode panics on what can't be JSON: everything that is encoded here is made
// here.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
