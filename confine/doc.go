// Package confine puts the layers on one process and executes the command there.
//
// # Enforces
//
// The order: no_new_privs, no capabilities, Landlock, descriptors above 2 closed
// on exec, seccomp, limits, execve. After a step that failed nothing more is done.
//
// # Does not enforce
//
// What the layers say is made by packages landlock and seccomp. Standard input,
// output and error are the command's own: a directory or a terminal that is open
// there keeps its rights.
//
// # Needs
//
// cgo, for the few lines that run where Go can't: in a forked child. Linux 5.11,
// for CLOSE_RANGE_CLOEXEC.
package confine
