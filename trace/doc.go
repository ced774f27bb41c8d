// Package trace watches the system calls of a task and of all that descends from
// it, by ptrace(2).
//
// # Enforces
//
// Nothing. What it reads of a task (paths, addresses) may have been changed by
// another thread meanwhile: it is good for telling people, never for deciding.
//
// # Does not enforce
//
// A traced task can't be traced again: a debugger inside fails. Calls of other
// architectures (int 0x80, x32) are not reported.
//
// # Needs
//
// A task that waits for the answer to a seccomp notification, to begin with;
// PTRACE_GET_SYSCALL_INFO, Linux 5.3. Each call costs two stops.
package trace
