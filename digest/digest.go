package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// State names the content of an inode for as long as nobody changes it.
type State struct {
	Dev, Ino     uint64
	Size         int64
	Mtime, Ctime int64 // nanoseconds
}

// StateOf is the state that stat(2) tells.
func StateOf(st *unix.Stat_t) State {
	return State{Dev: st.Dev, Ino: st.Ino, Size: st.Size, Mtime: unix.TimespecToNsec(st.Mtim), Ctime: unix.TimespecToNsec(st.Ctim)}
}

// settled is how old a change must be to be told from the next by its time. The
// clock of file systems ticks every 4 to 10 ms; dirty shared mappings move it
// later still.
const settled = 2 * time.Second

// maxCache bounds the cache file: some ten thousand lines.
const maxCache = 1 << 20

// Cache is a file of digests; with an empty path it remembers nothing beyond its
// life.
type Cache struct {
	path  string
	known map[State]string
	fresh bool // there is something to save
}

// Open reads a cache; one that is not there, or is damaged, is empty.
func Open(path string) *Cache {
	c := &Cache{path: path, known: map[State]string{}}
	if path == "" {
		return c
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return c
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCache))
	if err != nil {
		return c
	}
	for line := range strings.Lines(string(text)) {
		if s, sum, ok := parseLine(line); ok {
			c.known[s] = sum
		}
	}
	return c
}

// parseLine is for speed: a start reads all lines, and fmt.Sscan takes longer
// than hashing small files.
func parseLine(line string) (s State, sum string, ok bool) {
	f := strings.Fields(line)
	if len(f) != 6 || len(f[0]) != 2*sha256.Size {
		return State{}, "", false
	}
	var n [5]int64
	for i := range n {
		v, err := strconv.ParseInt(f[i+1], 10, 64)
		if err != nil {
			return State{}, "", false
		}
		n[i] = v
	}
	return State{Dev: uint64(n[0]), Ino: uint64(n[1]), Size: n[2], Mtime: n[3], Ctime: n[4]}, f[0], true
}

// Sum returns the SHA-256 of a regular file in hexadecimal digits, and the state
// that it belongs to.
func (c *Cache) Sum(path string) (sum string, s State, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return "", State{}, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", State{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", State{}, errors.New("not a regular file")
	}
	s = StateOf(&st)
	if sum, ok := c.known[s]; ok {
		return sum, s, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", State{}, err
	}
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", State{}, err
	}
	if StateOf(&st) != s {
		return "", State{}, errors.New("it changes while it is read")
	}
	sum = hex.EncodeToString(h.Sum(nil))
	if time.Since(time.Unix(0, s.Ctime)) > settled {
		c.known[s], c.fresh = sum, true
	}
	return sum, s, nil
}

// Save writes the cache if there is something new. Failing is no harm: the next
// start reads the files again.
func (c *Cache) Save() {
	if !c.fresh || c.path == "" {
		return
	}
	var text strings.Builder
	for s, sum := range c.known {
		fmt.Fprintf(&text, "%s %d %d %d %d %d\n", sum, s.Dev, s.Ino, s.Size, s.Mtime, s.Ctime)
	}
	if text.Len() > maxCache { // of files long gone, mostly: begin anew
		os.Remove(c.path)
		return
	}
	if os.MkdirAll(filepath.Dir(c.path), 0o700) != nil {
		return
	}
	tmp, err := os.CreateTemp(filepath.Dir(c.path), ".digests-*")
	if err != nil {
		return
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(text.String())
	if err = errors.Join(err, tmp.Close()); err == nil {
		os.Rename(tmp.Name(), c.path)
	}
}
