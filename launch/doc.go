// Package launch starts a command under a plan. It is the only code that knows
// the order of the steps.
//
// # Enforces
//
// The order itself: what can fail is done before anything is confined; then,
// on one locked thread, no_new_privs, no capabilities, Landlock, descriptors
// above 2 marked to close, seccomp, execve. When execve succeeds the command
// has this process's pid, parent, terminal and process group, and nothing of
// jail is left. Core dumps are off, limits set, TMPDIR is private (0700).
//
// # Does not enforce
//
// Standard input, output and error are the command's own: a directory or a
// terminal that is open there keeps its rights. A private TMPDIR is removed by
// a later start, not at exit, since nobody is left to do it.
//
// # Needs
//
// A plan that is enforceable on this host.
package launch
