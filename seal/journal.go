package seal

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	journals       = 50       // are kept
	journalSize    = 64 << 20 // one is no larger
	journalTrailer = 512      // what its last lines may take: what was lost, that it is full
	journalLine    = 64 << 10 // no line is longer: two paths, each byte escaped
	journalSuffix  = ".json"
)

// Started is the decision of the first line, which says whose run it is: its path is
// the project, its parent the command. It has the form of all others, for who reads
// journals and knows nothing of it. Journals of old have none.
const Started = "started"

// Entry is one line of a journal: a seal, or a refusal.
type Entry struct {
	Time     time.Time
	PID      int    // as the supervisor sees it
	Parent   string // the program that asked
	Path     string // of the original, as the jail sees it
	Digest   Digest // zero if the file was not read
	Size     int64
	Decision string // "sealed", "cached", "refused", Started, ...
	Rule     string // the rule or reason behind it
}

// line is an Entry as it is written. JSON strings are UTF-8 and paths need not be.
type line struct {
	Time        time.Time `json:"time"`
	PID         int       `json:"pid"`
	Parent      string    `json:"parent,omitempty"`
	Path        string    `json:"path"`
	PathBytes   []byte    `json:"path_bytes,omitempty"` // if Path is not what it was
	ParentBytes []byte    `json:"parent_bytes,omitempty"`
	Digest      string    `json:"sha256,omitempty"`
	Size        int64     `json:"size"`
	Decision    string    `json:"decision"`
	Rule        string    `json:"rule,omitempty"`
}

// MarshalJSON writes one line, without its end.
func (e Entry) MarshalJSON() ([]byte, error) {
	l := line{Time: e.Time, PID: e.PID, Parent: e.Parent, Path: e.Path, Size: e.Size, Decision: e.Decision, Rule: e.Rule}
	if e.Digest != (Digest{}) {
		l.Digest = hex.EncodeToString(e.Digest[:])
	}
	if !utf8.ValidString(e.Path) {
		l.PathBytes = []byte(e.Path)
	}
	if !utf8.ValidString(e.Parent) {
		l.ParentBytes = []byte(e.Parent)
	}
	return json.Marshal(l)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Entry) UnmarshalJSON(text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	*e = Entry{Time: l.Time, PID: l.PID, Parent: l.Parent, Path: l.Path, Size: l.Size, Decision: l.Decision, Rule: l.Rule}
	if l.PathBytes != nil {
		e.Path = string(l.PathBytes)
	}
	if l.ParentBytes != nil {
		e.Parent = string(l.ParentBytes)
	}
	if l.Digest == "" {
		return nil
	}
	sum, err := hex.DecodeString(l.Digest)
	if err != nil || len(sum) != len(e.Digest) {
		return fmt.Errorf("%q is no SHA-256", l.Digest)
	}
	copy(e.Digest[:], sum)
	return nil
}

// Journal is what a run records.
type Journal struct {
	mu   sync.Mutex
	file *os.File
	size int64
	full bool
	lost int // entries that could not be written, and have not been accounted for
}

// ErrFull says that a journal has reached its size. What is not recorded must not
// pass for something that did not happen, so the last line says it too.
var ErrFull = errors.New("the journal of this run is full")

func (s *Store) newJournal(id string) (*Journal, error) {
	f, err := s.root.OpenFile(path.Join("journal", id+journalSuffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Journal{file: f}, nil
}

// Write records an entry. An entry without a time gets the present one.
func (j *Journal) Write(e Entry) error {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.full:
		return ErrFull
	case len(text) >= journalLine:
		j.lost++
		return errors.New("the entry is too long for the journal")
	case j.size+int64(len(text)) > journalSize-journalTrailer:
		return j.finish(e.Time)
	}
	return j.append(text)
}

// finish writes the last line. While it can't be written the journal is not full:
// what comes is lost, and the line is tried again.
func (j *Journal) finish(at time.Time) error {
	text, _ := json.Marshal(Entry{Time: at, Decision: "full", Rule: "the journal is full; what follows is not recorded"})
	if err := j.append(text); err != nil {
		return err
	}
	j.full = true
	return ErrFull
}

// append writes a line whole or not at all. When there is room again after a disk
// was full, the line before it says how many are missing: who fills the disk does
// not hide that something was done meanwhile.
func (j *Journal) append(text []byte) error {
	var lines []byte
	if j.lost > 0 {
		lines, _ = json.Marshal(Entry{Time: time.Now(), Decision: "lost", Rule: fmt.Sprintf("entries that could not be written: %d", j.lost)})
		lines = append(lines, '\n')
	}
	if text != nil {
		lines = append(append(lines, text...), '\n')
	}
	n, err := j.file.Write(lines)
	if err != nil {
		j.lost++
		if n > 0 {
			err = errors.Join(err, j.file.Truncate(j.size))
		}
		return err
	}
	j.size, j.lost = j.size+int64(n), 0
	return nil
}

func (j *Journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var err error
	if j.lost > 0 {
		err = j.append(nil)
	}
	return errors.Join(err, j.file.Close())
}

// Runs lists the runs that have a journal, oldest first.
func (s *Store) Runs() []string {
	var ids []string
	for _, name := range s.list("journal") {
		if id, ok := strings.CutSuffix(name, journalSuffix); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Alive tells whether a run has not ended.
func (s *Store) Alive(id string) bool {
	dir, err := s.root.OpenRoot(path.Join("runs", id))
	if err != nil {
		return false
	}
	defer dir.Close()
	lock, err := lockDir(dir)
	if err == nil { // nobody holds it: the run was killed
		lock.Close()
	}
	return errors.Is(err, unix.EWOULDBLOCK)
}

// OpenJournal opens the journal of a run for reading.
func (s *Store) OpenJournal(id string) (*os.File, error) {
	return s.root.Open(path.Join("journal", id+journalSuffix))
}

// Start reads the line that says whose run a journal is of; false if it has none.
func (s *Store) Start(id string) (Entry, bool) {
	f, err := s.OpenJournal(id)
	if err != nil {
		return Entry{}, false
	}
	defer f.Close()
	for e, err := range Entries(f, new(int64)) {
		return e, err == nil && e.Decision == Started
	}
	return Entry{}, false
}

// dropJournals removes the oldest journals of runs that have ended.
func (s *Store) dropJournals() {
	ids := s.Runs()
	for i := range len(ids) - journals {
		if !s.Alive(ids[i]) {
			s.root.Remove(path.Join("journal", ids[i]+journalSuffix))
		}
	}
}

// Entries reads a journal. A line that is none yields an error, and reading goes
// on behind it. A line that has no end yet is left for later: the offset tells
// where it starts.
func Entries(r io.Reader, offset *int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		in := bufio.NewReaderSize(r, journalLine)
		for {
			text, err := in.ReadSlice('\n')
			long := false
			for ; errors.Is(err, bufio.ErrBufferFull); text, err = in.ReadSlice('\n') {
				*offset, long = *offset+int64(len(text)), true
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(Entry{}, err)
				}
				return
			}
			*offset += int64(len(text))
			var e Entry
			if err = json.Unmarshal(text, &e); long {
				err = errors.New("the line is too long")
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
