// Package digest knows the SHA-256 of files, and remembers them.
//
// # Enforces
//
// A digest is of the bytes behind one open descriptor, and goes with the state
// of the inode ([State]) in which they were read: who grants the file compares
// that state on its own descriptor. What is remembered counts only for the same
// device, inode, size, mtime and ctime, and is not remembered at all while the
// last change is so young that another could have the same time.
//
// # Does not enforce
//
// A file system that does not keep ctime, or a disk written below the file
// system, goes unnoticed. The cache is believed: it lies in jail's own
// directory, which no jail may write.
//
// # Needs
//
// Read access to the files. Without a writable cache everything is read anew.
package digest
