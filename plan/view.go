package plan

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// view remembers what it has seen of the file system, so that a compilation
// asks the kernel once about each name. It is as old as its first question;
// what counts is checked again when the rule is made (package landlock).
type view struct {
	names map[string]inode    // by real path of the directory, and name
	links map[string]resolved // by path as asked
	lists map[string]dirList  // of directories, by real path

	buffer []byte
}

type inode struct {
	id   ID
	mode fs.FileMode
	uid  int
	// links is how many names it has.
	links uint64
	err   error
}

type resolved struct {
	real   string
	exists bool
	links  []string // followed on the way, by real path
	err    error
}

func newView() *view {
	return &view{names: map[string]inode{}, links: map[string]resolved{}, lists: map[string]dirList{}}
}

// lstat describes path itself, not what a link leads to.
func (v *view) lstat(path string) inode {
	if n, ok := v.names[path]; ok {
		return n
	}
	var n inode
	fi, err := os.Lstat(path)
	if n.err = err; err == nil {
		st := fi.Sys().(*syscall.Stat_t)
		n.id, n.mode, n.uid, n.links = ID{Dev: st.Dev, Ino: st.Ino}, fi.Mode(), int(st.Uid), uint64(st.Nlink)
	}
	v.names[path] = n
	return n
}

// maxLinks is the kernel's own limit on links in one path.
const maxLinks = 40

// real resolves every symbolic link of an absolute, clean path. Of a path that
// does not exist the existing part is resolved; exists is then false. A link
// that leads nowhere is an error.
func (v *view) real(path string) (real string, exists bool, err error) {
	if !filepath.IsAbs(path) {
		return "", false, &fs.PathError{Op: "lstat", Path: path, Err: syscall.EINVAL}
	}
	r := v.resolve(path, 0)
	return r.real, r.exists, r.err
}

func (v *view) resolve(path string, depth int) resolved {
	if path == "/" {
		return resolved{real: "/", exists: true}
	}
	if r, ok := v.links[path]; ok {
		return r
	}
	r := v.step(path, depth)
	v.links[path] = r
	return r
}

func (v *view) step(path string, depth int) resolved {
	if depth > maxLinks {
		return resolved{err: &fs.PathError{Op: "lstat", Path: path, Err: syscall.ELOOP}}
	}
	parent := v.resolve(filepath.Dir(path), depth)
	if parent.err != nil {
		return parent
	}
	here := filepath.Join(parent.real, filepath.Base(path))
	if !parent.exists {
		return resolved{real: here, links: parent.links}
	}
	n := v.lstat(here)
	switch {
	case os.IsNotExist(n.err):
		return resolved{real: here, links: parent.links}
	case n.err != nil:
		return resolved{err: n.err}
	case n.mode&fs.ModeSymlink == 0:
		return resolved{real: here, exists: true, links: parent.links}
	}
	r := v.follow(here, parent.real, depth)
	r.links = slices.Concat(parent.links, []string{here}, r.links)
	return r
}

func (v *view) follow(link, dir string, depth int) resolved {
	target, err := os.Readlink(link)
	if err != nil {
		return resolved{err: err}
	}
	if !filepath.IsAbs(target) {
		target = dir + "/" + target
	}
	// ".." after a link means the parent of where the link leads, so a target
	// is not cleaned as a whole but taken step by step.
	at := resolved{real: "/", exists: true}
	var links []string
	for _, name := range strings.Split(target, "/") {
		if !v.lstat(at.real).mode.IsDir() { // also before "." and a final "/"
			return resolved{err: &fs.PathError{Op: "lstat", Path: link, Err: syscall.ENOTDIR}}
		}
		switch name {
		case "", ".":
		case "..":
			at.real = filepath.Dir(at.real)
		default:
			at = v.resolve(filepath.Join(at.real, name), depth+1)
			links = append(links, at.links...)
		}
		if at.err != nil || !at.exists {
			break
		}
	}
	if at.err == nil && !at.exists {
		at.err = &fs.PathError{Op: "lstat", Path: link, Err: syscall.ENOENT}
	}
	at.links = links
	return at
}
