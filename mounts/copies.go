package mounts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// copies is where, in the private /tmp, the jail's copies of files lie. The name
// begins with a dot: `rm -rf /tmp/*` is an honest thing to do.
const copies = ".jail-copies"

// maxCopy bounds a file of which the jail gets a copy.
const maxCopy = 1 << 20

// makeCopies makes, for each file that the jail gets a copy of, the copy and a
// symbolic link to it. The link is what covers the file: git locks and renames
// where links lead, so it writes the copy, and the file itself is out of reach
// like one that is only protected. Of what git would not read as a config there is
// no copy: who leaves a fifo or a huge file there must not keep the next jail from
// starting.
func (l *Layout) makeCopies() error {
	for i, c := range l.Covers {
		if c.Kind != Copy {
			continue
		}
		text, err := readCopied(c.Path)
		if errors.Is(err, errUnfit) {
			l.Covers[i].Kind = Protect
			continue
		}
		if err != nil {
			return fmt.Errorf("copying %q: %w", c.Path, err)
		}
		dir := filepath.Join(l.Temp, copies, strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "copy"), text, 0o600); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join(tmp, copies, strconv.Itoa(i), "copy"), filepath.Join(dir, "link")); err != nil {
			return err
		}
	}
	return nil
}

// Unkept lists the files whose copy the jail has changed: what it wrote there
// ends with it. It is for the parent, once the jail has ended, and takes nothing
// that the jail left for what it was.
func (l Layout) Unkept() []string {
	var out []string
	for i, c := range l.Covers {
		if c.Kind != Copy {
			continue
		}
		is, err := readCopied(c.Path)
		if errors.Is(err, errUnfit) {
			continue // it had none, or what lies there now is not comparable
		}
		was, err2 := l.readCopy(i)
		if errors.Join(err, err2) != nil || !bytes.Equal(is, was) {
			out = append(out, c.Path)
		}
	}
	return out
}

// readCopied reads a small regular file, without following a link to it and
// without waiting for a fifo.
func readCopied(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return readSmall(f)
}

// readCopy reads a copy that the jail may have written. The directories above it are
// the jail's too: no link there leads out of its /tmp.
func (l Layout) readCopy(i int) ([]byte, error) {
	root, err := os.OpenRoot(l.Temp)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(filepath.Join(copies, strconv.Itoa(i), "copy"), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return readSmall(f)
}

var errUnfit = errors.New("not a small regular file")

func readSmall(f *os.File) ([]byte, error) {
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxCopy {
		return nil, errUnfit
	}
	return io.ReadAll(io.LimitReader(f, maxCopy))
}

// link takes the link to the copy that belongs to a cover. The private /tmp is in
// place, and nothing untrusted has seen it yet.
func (l *Layout) link(c Cover) (int, error) {
	i := slices.Index(l.Covers, c)
	at, err := unix.Open(filepath.Join(tmp, copies, strconv.Itoa(i), "link"), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	return clone(at, restFlags)
}
