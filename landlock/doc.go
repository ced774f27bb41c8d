// Package landlock turns a plan into a Landlock ruleset and puts it on the
// calling thread (landlock(7)).
//
// # Enforces
//
// Which files are opened for reading and writing, listed, created, removed,
// linked, renamed and given to execve(2); from ABI 3 truncation, 4 TCP ports,
// 5 ioctl on devices, 6 signals and abstract unix sockets, 9 unix sockets with
// a path. Everything that the running ABI can handle is handled; what no rule
// grants is refused with EACCES.
//
// # Does not enforce
//
// stat, chdir, access, readlink, chmod, chown, utime, extended attributes,
// flock and inotify are not covered by any ABI. Execute rights are checked by
// execve only, not by mmap: a file that may be read can be loaded by ld.so.
// One ruleset can't subtract: carve-outs need the mounts layer.
//
// # Needs
//
// Linux 5.13 with Landlock enabled; /proc while the ruleset is built.
package landlock
