// Package seal keeps what a jail wrote and then wants to execute: immutable
// copies, out of its reach, and a journal of them.
//
// A jail never executes what it may write. What it built crosses over by being
// sealed: the bytes are copied and hashed in one pass into a cache that lies in
// no grant, and a hard link to the copy is put into the directory of this run,
// which the jail may execute and not write.
//
//	DIR/cache/DIGEST     the copies, by SHA-256, shared by all runs
//	DIR/index            which file had which digest, so that it is not read again
//	DIR/journal/RUN.json whose run it was and what it sealed, one JSON line each
//	DIR/runs/RUN/x       what this run may execute: the jail sees this directory
//	DIR/runs/RUN/obj     the copies this run has verified; tmp: what is being made
//
// # Enforces
//
// What appears in a run's directory has the digest that is recorded: it is the
// copy that is hashed, not the original, and a copy that an earlier run made is
// compared with the original before this run uses it. Set-id files, files that are open for
// writing, files over a limit and refused digests never get there. Names appear
// whole or not at all; a crash leaves nothing that a later run would use.
// DIR belongs to the user, nobody else may write it, and it is no symbolic link.
//
// # Does not enforce
//
// That the jail can't write DIR: it must lie in no grant, and only Run.Dir may be
// executed. That the file was allowed to be executed where it lay: the caller
// asks that, and finds the original's real path. Who can write DIR from outside,
// as the same user, can do all that the user can, this included. On file systems
// that know no leases (NFS, FUSE) a file that somebody is still writing can be
// sealed as it is at that moment; what runs is what was hashed all the same.
//
// # Needs
//
// A file system with hard links and flock(2) below DIR.
package seal
