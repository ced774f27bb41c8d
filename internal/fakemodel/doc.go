// Package fakemodel is a model server that plays a script, for tests that run
// a real coding agent without a real model.
//
// It speaks the OpenAI chat-completions protocol on a loopback port: streamed
// (server-sent events) or in one piece, and GET /v1/models. Each turn of the
// agent gets the next [Step] of the [Script]; what the agent's tools answered
// is kept for the test to look at, word for word as a model would have read it.
//
// The server keeps no conversation. A tool call's id carries the number of its
// step, and the id comes back with the result in every later request, so the
// next step is read from the request itself. Retries, repeated requests and
// several sessions at a time therefore do no harm.
//
// Names are not guessed per agent: a [Call] says what is meant ("run this
// command"), and the tool and parameter that carry it are looked up in the
// schemas that the request offers.
//
// # Enforces
//
// Nothing. It is a tool of the tests.
//
// # Does not enforce
//
// It checks no key and no model name, and anybody on this host who finds the
// port may talk to it.
//
// # Needs
//
// A loopback interface.
package fakemodel
