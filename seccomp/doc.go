// Package seccomp makes the system call filter of a plan and loads it.
//
// # Enforces
//
// A list of system calls, and of arguments to some, is refused with an errno,
// never by killing: memory files, namespaces, mounts, io_uring, bpf, keyrings,
// tracing of other processes' memory, terminal injection, set-id bits, socket
// families and protocols outside the usual, unix sockets (unless the kernel or
// a rule makes them safe), and every call of a foreign architecture. The
// filter is inherited by all children and can't be removed. What a plan has a
// supervisor for waits for its answer, and fails with ENOSYS when there is none.
//
// # Does not enforce
//
// Nothing that lies behind a pointer: paths, socket addresses, the structures
// of clone3 and openat2 (both are therefore refused whole, with ENOSYS, on
// which programs fall back). Calls that are not listed reach the kernel.
//
// # Needs
//
// seccomp(2) filters (Linux 3.17) and no_new_privs on the calling thread. The
// filter is compiled by libseccomp; calls newer than the library are named by
// number. Waiting for an answer needs Linux 5.9.
package seccomp
