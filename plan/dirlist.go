package plan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// entry is one name in a directory. os.ReadDir sorts, asks the kernel in small
// pieces and makes two objects of each name; where something is denied every name
// in /usr/bin counts, so this reads getdents64(2) itself.
type entry struct {
	name string
	kind uint8 // DT_*
}

func (e entry) isDir() bool     { return e.kind == unix.DT_DIR }
func (e entry) isRegular() bool { return e.kind == unix.DT_REG }

// dirList is a directory as it was at one moment.
type dirList struct {
	entries []entry
	changed int64 // ctime before it was read
	err     error
}

// list reads a directory once in a compilation.
func (v *view) list(dir string) dirList {
	if l, ok := v.lists[dir]; ok {
		return l
	}
	if v.buffer == nil {
		v.buffer = make([]byte, 64<<10)
	}
	l := readListing(dir, v.buffer)
	v.lists[dir] = l
	return l
}

func readListing(dir string, buffer []byte) (l dirList) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return dirList{err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return dirList{err: err}
	}
	l.changed = unix.TimespecToNsec(st.Ctim)
	for {
		n, err := unix.Getdents(fd, buffer)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return dirList{err: err}
		case n == 0:
			return l
		default:
			l.entries = appendEntries(l.entries, fd, buffer[:n])
		}
	}
}

// appendEntries decodes struct linux_dirent64: inode, offset, length of the
// record, type, name.
func appendEntries(out []entry, dir int, records []byte) []entry {
	const lengthAt, kindAt, nameAt = 16, 18, 19
	for len(records) >= nameAt {
		n := int(binary.NativeEndian.Uint16(records[lengthAt:]))
		if n < nameAt || n > len(records) {
			return out // the kernel writes no such thing
		}
		name, _, _ := bytes.Cut(records[nameAt:n], []byte{0})
		e := entry{name: string(name), kind: records[kindAt]}
		if e.kind == unix.DT_UNKNOWN { // a file system that does not tell
			e.kind = kindOf(dir, e.name)
		}
		if e.name != "." && e.name != ".." {
			out = append(out, e)
		}
		records = records[n:]
	}
	return out
}

func kindOf(dir int, name string) uint8 {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return unix.DT_UNKNOWN
	}
	return uint8(st.Mode & unix.S_IFMT >> 12) // IFTODT of <dirent.h>
}

// grantable lists what can be granted one by one: links lead nowhere by
// themselves.
func (l dirList) grantable(omit map[string]bool) Names {
	names := make(Names, 0, len(l.entries))
	for _, e := range l.entries {
		if e.kind != unix.DT_LNK && !omit[e.name] {
			names = append(names, e.grantName())
		}
	}
	slices.Sort(names)
	return names
}

// grantName is the name as Names has it.
func (e entry) grantName() string {
	if e.isDir() {
		return e.name + "/"
	}
	return e.name
}
