// Package mounts builds the file system view of a jail in a private mount
// namespace: the same paths, but read-only, noexec, nosuid and nodev wherever
// no grant says otherwise.
//
// # Enforces
//
// Outside of write trees nothing changes: no mode, owner, time, attribute or
// length. Outside of exec trees nothing is loaded as code, whether by execve,
// ld.so, LD_PRELOAD, dlopen or mmap. Where a write tree and an exec tree lie in
// one another the longer path wins. protect and hide hold inside write trees,
// and the directories above them can't be renamed. /tmp, /var/tmp, /dev/shm and
// /run are private.
//
// # Does not enforce
//
// What may be read: that is Landlock's. A carve-out is a mount on a file or
// directory; when the host replaces what it covers (an editor that saves by
// renaming), the kernel drops the mount. A file that the jail has a copy of (the
// config of a submodule) reads inside as the jail has written it. A path that
// does not exist can't be held.
//
// # Needs
//
// A process with CAP_SYS_ADMIN in a fresh user and mount namespace, outside of
// any Landlock domain; mount_setattr(2), Linux 5.12.
package mounts
