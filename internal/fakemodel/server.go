package fakemodel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
)

// aside answers the requests that are no turn of the conversation: agents ask
// for a title or a summary without offering a tool. It uses up no step.
const aside = "Scripted run"

// A Server plays a script to any agent that asks.
type Server struct {
	URL string // what agents call the base URL, with /v1

	script Script
	http   *http.Server

	mu      sync.Mutex
	results map[place]Result
	done    bool
}

// A Result is what a tool of the agent answered to one call of the script.
type Result struct {
	Step int    // index in Script.Steps
	Tool string // the agent's name for the tool
	Text string // as the model gets it, errors too
}

// Start serves a script on a free port of 127.0.0.1.
func Start(script Script) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("model server: %w", err)
	}
	s := &Server{URL: "http://" + l.Addr().String() + "/v1", script: script, results: map[place]Result{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", models)
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	s.http = &http.Server{Handler: mux}
	go s.http.Serve(l) //nolint:errcheck // it ends by Close, always with an error
	return s, nil
}

// Close ends the server and breaks off what it is answering. What was recorded
// stays.
func (s *Server) Close() error { return s.http.Close() }

// Results returns the answers so far, in the order of the script. An agent may
// change old answers in later requests, to save space; the first one counts.
func (s *Server) Results() []Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := slices.SortedFunc(maps.Keys(s.results), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.call, b.call))
	})
	var list []Result
	for _, p := range order {
		list = append(list, s.results[p])
	}
	return list
}

// Done tells whether an agent came to the final text, that is: every step was
// played and answered.
func (s *Server) Done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

func models(w http.ResponseWriter, _ *http.Request) {
	model := object{"id": "fake", "object": "model", "created": 1, "owned_by": "script"}
	writeJSON(w, http.StatusOK, object{"object": "list", "data": []object{model}})
}

// chat answers one chat-completions request.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	var req request
	err := json.NewDecoder(r.Body).Decode(&req)
	var rep reply
	if err == nil {
		rep, err = s.next(req)
	}
	switch {
	case err != nil: // 400: agents retry a 500, and a test would hang
		writeJSON(w, http.StatusBadRequest, object{"error": object{"message": err.Error(), "type": "script"}})
	case req.Stream:
		rep.stream(w, req.Model)
	default:
		rep.send(w, req.Model)
	}
}

// next is the turn that follows the history of the request.
func (s *Server) next(req request) (reply, error) {
	if !useful(req.Tools) {
		return reply{text: aside}, nil
	}
	step := s.record(req.results())
	if step >= len(s.script.Steps) {
		return reply{text: s.script.final()}, nil
	}
	return s.script.Steps[step].reply(step, req.Tools)
}

// record keeps the results that are new, and returns the step to play next.
func (s *Server) record(found map[place]Result) (step int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, r := range found {
		step = max(step, p.step+1)
		if _, old := s.results[p]; !old {
			s.results[p] = r
		}
	}
	s.done = s.done || step >= len(s.script.Steps)
	return step
}

// reply puts a step into tool calls.
func (st Step) reply(step int, offered []tool) (reply, error) {
	var r reply
	for i, c := range st {
		name, args, err := c.fit(offered)
		if err != nil {
			return reply{}, fmt.Errorf("step %d: %w", step, err)
		}
		f := function{Name: name, Arguments: string(encode(args))}
		r.calls = append(r.calls, toolCall{ID: place{step, i}.id(), Type: "function", Function: f})
	}
	return r, nil
}
