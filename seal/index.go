package seal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
)

// The index is rewritten with its newest half when it has more lines than this.
const indexLines = 8192

// index remembers digests of files from one run to the next. It only saves
// copying a file again: the copy that it leads to is compared with the file before
// use. A line that is damaged counts as absent.
type index struct {
	root    *os.Root
	mu      sync.Mutex
	entries map[fileID]Digest // nil until the first use
	file    *os.File          // for appending; nil where that failed
}

const indexName = "index"

// get returns the digest of a file in that state, if it is known.
func (x *index) get(id fileID) (Digest, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.load()
	d, ok := x.entries[id]
	return d, ok
}

// put remembers a digest. Failing to is no error: the file is then read again.
func (x *index) put(id fileID, d Digest) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.load()
	if len(x.entries) >= 2*indexLines {
		clear(x.entries) // a jail can make any number of files
	}
	x.entries[id] = d
	if x.file == nil {
		x.file, _ = x.root.OpenFile(indexName, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	}
	if x.file != nil {
		x.file.Write(indexLine(id, d)) // one write: lines of several runs do not mix
	}
}

// forget empties it, for this run and those to come.
func (x *index) forget() error {
	x.close()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.entries = map[fileID]Digest{}
	if err := x.root.Remove(indexName); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (x *index) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.file != nil {
		x.file.Close()
		x.file = nil
	}
}

// load reads the file at the first use; a run that seals nothing does without.
func (x *index) load() {
	if x.entries != nil {
		return
	}
	x.entries = map[fileID]Digest{}
	f, err := x.root.Open(indexName)
	if err != nil {
		return
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4<<20))
	if err != nil {
		return
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if len(lines) > indexLines {
		lines = lines[len(lines)-indexLines/2:]
		x.replace(lines)
	}
	for _, line := range lines {
		if id, d, ok := parseIndexLine(line); ok {
			x.entries[id] = d
		}
	}
}

// replace writes the index anew. What another run appends meanwhile is lost,
// which costs it a reading.
func (x *index) replace(lines [][]byte) {
	name := fmt.Sprintf("%s.%d", indexName, os.Getpid())
	if x.root.WriteFile(name, bytes.Join(lines, nil), 0o600) != nil || x.root.Rename(name, indexName) != nil {
		x.root.Remove(name)
	}
}

// indexLine is a line: six fields and a checksum of what is before it.
func indexLine(id fileID, d Digest) []byte {
	text := fmt.Sprintf("%x %x %x %x %x %x", id.dev, id.ino, id.size, id.mtime, id.ctime, d[:])
	return fmt.Appendf(nil, "%s %08x\n", text, crc32.ChecksumIEEE([]byte(text)))
}

func parseIndexLine(line []byte) (id fileID, d Digest, ok bool) {
	text, found := strings.CutSuffix(string(line), "\n")
	fields := strings.Split(text, " ")
	if !found || len(fields) != 7 {
		return id, d, false
	}
	sum, err := hex.DecodeString(fields[5])
	if err != nil || len(sum) != len(d) {
		return id, d, false
	}
	copy(d[:], sum)
	if id.dev, err = strconv.ParseUint(fields[0], 16, 64); err != nil {
		return id, d, false
	}
	if id.ino, err = strconv.ParseUint(fields[1], 16, 64); err != nil {
		return id, d, false
	}
	for i, to := range []*int64{&id.size, &id.mtime, &id.ctime} {
		if *to, err = strconv.ParseInt(fields[2+i], 16, 64); err != nil {
			return id, d, false
		}
	}
	// Written again it must be the same line, checksum included.
	return id, d, string(line) == string(indexLine(id, d))
}
