package fakemodel

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A request is what the server looks at in a chat-completions request.
type request struct {
	Model    string    `json:"model"`
	Stream   bool      `json:"stream"`
	Tools    []tool    `json:"tools"`
	Messages []message `json:"messages"`
}

// A message is one entry of the history that the agent sends along each time.
type message struct {
	Role       string     `json:"role"`
	Content    content    `json:"content"`
	ToolCallID string     `json:"tool_call_id"`
	ToolCalls  []toolCall `json:"tool_calls"`
}

// A toolCall goes out in a reply and comes back in the history.
type toolCall struct {
	Index    *int     `json:"index,omitempty"` // in streams only
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"` // JSON, as text
}

// content is a text that may also be sent as a list of parts.
type content string

// UnmarshalJSON takes a string, null, or a list of parts with a text each.
func (c *content) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		return json.Unmarshal(b, (*string)(c))
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	*c = content(strings.Join(texts, "\n"))
	return nil
}

// A place is where in the script a call stands.
type place struct{ step, call int }

// id is the tool call id that carries a place to the agent and back.
func (p place) id() string { return fmt.Sprintf("call_%d_%d", p.step, p.call) }

func parsePlace(id string) (p place, ok bool) {
	n, err := fmt.Sscanf(id, "call_%d_%d", &p.step, &p.call)
	return p, err == nil && n == 2
}

// results lists the answers to our calls that the history holds.
func (r request) results() map[place]Result {
	names := map[string]string{}
	found := map[place]Result{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Function.Name
		}
		if p, ok := parsePlace(m.ToolCallID); ok && m.Role == "tool" {
			found[p] = Result{Step: p.step, Tool: names[m.ToolCallID], Text: string(m.Content)}
		}
	}
	return found
}
