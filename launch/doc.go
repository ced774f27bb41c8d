// Package launch starts a command under a plan. It is the only code that knows
// the order of the steps.
//
// # Enforces
//
// The order itself: what can fail is done before anything is confined. With the
// mounts layer there are three processes. The parent stays outside, passes on
// signals, stops when the command stops, continues it when its shell continues the
// parent, returns the status and tidies up. Init, process 1 of the namespaces, builds the view, reaps, keeps carve-outs in
// place, and ends everything when the command or the parent ends. The command is
// forked by init and confined (package confine) before it executes. Core dumps
// are off, limits set, TMPDIR is private (0700).
//
// Without the mounts layer there is one: jail confines itself and executes, and
// nothing of it is left.
//
// # Does not enforce
//
// Standard input, output and error are the command's own. Without the mounts
// layer a private TMPDIR is removed by a later start, not at exit, since nobody
// is left to do it.
//
// # Needs
//
// A plan that is enforceable on this host.
package launch
