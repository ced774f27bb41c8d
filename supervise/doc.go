// Package supervise answers the calls of a jail that wait for an answer: it
// turns the execution of a file that was written inside into that of its seal,
// connects unix sockets on behalf, and says why something is refused.
//
// # Enforces
//
// That a unix socket of the jail is connected to a process of the same jail, or
// to a path that a rule names. Nothing else: an answer is never what keeps a
// promise. What is left to the kernel ("continue") is decided by the kernel, on
// arguments that may have changed since they were read here; a written file is
// never executable for it.
//
// # Does not enforce
//
// That an artifact runs in the artifact domain: see package runner. A guide is
// advice.
//
// That a call is never EINTR for being watched: a signal whose handler was
// installed without SA_RESTART ends a wait in the few microseconds before the
// call is received here. After that only fatal signals do, so a blocking
// connect to the internet is left by no handler.
//
// # Needs
//
// seccomp user notification with added descriptors (Linux 5.9; without
// 5.19 a call that waits is interrupted by signals), openat2(2), and ptrace(2)
// of the jail's tasks: a user namespace that this user has made, or Yama below 2.
// The supervisor stays outside of all namespaces, and is not itself the parent of
// what it supervises: waiting for a child takes the stops of a trace as well.
package supervise
