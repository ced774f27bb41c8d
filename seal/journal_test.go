package seal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// entries reads all of a journal that can be read.
func entries(t testing.TB, text []byte) (out []Entry, bad int) {
	t.Helper()
	var offset int64
	for e, err := range Entries(bytes.NewReader(text), &offset) {
		if err != nil {
			bad++
			continue
		}
		out = append(out, e)
	}
	if end := int64(bytes.LastIndexByte(text, '\n') + 1); offset != end {
		t.Errorf("the offset is %d, not %d", offset, end)
	}
	return out, bad
}

func TestJournal(t *testing.T) {
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 0)
	r := newRun(t, s)
	want := []Entry{
		{Time: time.Unix(1, 2).UTC(), PID: 3, Parent: "/bin/sh", Path: "/p/a.out", Digest: Digest{1}, Size: 4, Decision: "sealed"},
		{Time: time.Unix(1, 3).UTC(), Path: "/p/line\nend\x1b[2J\xff\x00", Parent: "\xfe", Decision: "refused", Rule: string(Busy)},
	}
	for _, e := range want {
		if err := r.Journal().Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Journal().Write(Entry{Path: strings.Repeat("x", journalLine)}); err == nil {
		t.Error("an overlong line is written")
	}
	r.Close()
	if err := r.Journal().Write(Entry{}); err == nil {
		t.Error("written after the end")
	}
	if d := cmp.Diff([]string{r.ID()}, s.Runs()); d != "" {
		t.Error(d)
	}
	text := read(t, filepath.Join(s.path, "journal", r.ID()+journalSuffix))
	if strings.Count(text, "\n") != 3 || strings.ContainsAny(text, "\x1b\x00") {
		t.Errorf("%q", text)
	}
	got, bad := entries(t, []byte(text))
	if d := cmp.Diff(want, got[:2]); d != "" || bad != 0 || got[2].Decision != "lost" {
		t.Error(d, bad, got[2:])
	}
}

// The first line says whose run it is, to readers of old as well: it is an entry. What
// comes later says nothing.
func TestStart(t *testing.T) {
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 0)
	start := Entry{Time: time.Unix(1, 2).UTC(), PID: 3, Parent: "go\xff", Path: "/p\xfe", Decision: Started}
	other := Entry{Time: time.Unix(1, 3).UTC(), Path: "/p/a.out", Decision: "sealed"}
	for name, tt := range map[string]struct {
		written []Entry
		want    Entry
		ok      bool
	}{
		"begun": {[]Entry{start, other}, start, true}, "old": {[]Entry{other, start}, other, false}, "empty": {},
	} {
		r := newRun(t, s)
		for _, e := range tt.written {
			if err := r.Journal().Write(e); err != nil {
				t.Fatal(err)
			}
		}
		got, ok := s.Start(r.ID())
		if d := cmp.Diff(tt.want, got); d != "" || ok != tt.ok {
			t.Error(name, ok, d)
		}
		all, bad := entries(t, []byte(read(t, r.journal.file.Name())))
		if d := cmp.Diff(tt.written, all); d != "" || bad != 0 {
			t.Error(name, bad, d)
		}
	}
	if _, ok := s.Start("3000-000"); ok {
		t.Error("a run that never was has begun")
	}
}

// What is damaged or unfinished hides nothing else.
func TestDamagedJournal(t *testing.T) {
	good, err := json.Marshal(Entry{Path: "/good"})
	if err != nil {
		t.Fatal(err)
	}
	line := string(good) + "\n"
	long := strings.Repeat(" ", journalLine) + line
	for name, text := range map[string]string{
		"noise": "\xff\x00{\n", "digest": `{"sha256":"abc"}` + "\n", "empty": "\n", "long": long,
	} {
		got, bad := entries(t, []byte(line+text+line+string(good)))
		if len(got) != 2 || bad != 1 {
			t.Errorf("%s: %d entries, %d errors", name, len(got), bad)
		}
	}
}

func TestFullJournal(t *testing.T) {
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 0)
	r := newRun(t, s)
	r.journal.size = journalSize - journalTrailer - 10
	for range 3 {
		if err := r.Journal().Write(Entry{Path: "/x"}); !errors.Is(err, ErrFull) {
			t.Errorf("%v", err)
		}
	}
	got, bad := entries(t, []byte(read(t, r.journal.file.Name())))
	if len(got) != 1 || bad != 0 || got[0].Decision != "full" {
		t.Errorf("%+v, %d", got, bad)
	}
}

// A journal whose last line found no room says what is missing once there is some.
func TestFullJournalOnFullDisk(t *testing.T) {
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 0)
	j := newRun(t, s).Journal()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	file := j.file
	j.file, j.size = full, journalSize-journalTrailer-10
	for range 2 {
		if err := j.Write(Entry{Path: "/x"}); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%v", err)
		}
	}
	j.file = file
	for range 2 {
		if err := j.Write(Entry{Path: "/x"}); !errors.Is(err, ErrFull) {
			t.Errorf("%v", err)
		}
	}
	got, bad := entries(t, []byte(read(t, file.Name())))
	if len(got) != 2 || bad != 0 || !strings.HasSuffix(got[0].Rule, "written: 2") || got[1].Decision != "full" {
		t.Errorf("%+v, %d", got, bad)
	}
}

// The journals of the last runs are kept, and of all that live.
func TestOldJournals(t *testing.T) {
	s := openStore(t, filepath.Join(tempDir(t), "seal"), 0)
	lives := newRun(t, s)
	if !s.Alive(lives.ID()) {
		t.Error("it is not alive")
	}
	for i := range journals + 10 {
		name := filepath.Join(s.path, "journal", fmt.Sprintf("3000-%03d%s", i, journalSuffix))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	newRun(t, s)
	ids := s.Runs()
	if len(ids) != journals+2 || !slices.Contains(ids, lives.ID()) || slices.Contains(ids, "3000-009") || !slices.Contains(ids, "3000-010") {
		t.Errorf("%d: %q", len(ids), ids)
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"time":"2026-01-02T03:04:05Z","path":"/x","path_bytes":"/w==","sha256":"00","decision":"sealed"}` + "\n"))
	f.Add([]byte("\n\xff\n{}\n{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, _ := entries(t, text)
		for _, e := range got {
			again, err := json.Marshal(e)
			if err != nil {
				continue // a year beyond 9999
			}
			var back Entry
			if err := json.Unmarshal(again, &back); err != nil || !back.Time.Equal(e.Time) || back.Path != e.Path || back.Digest != e.Digest {
				t.Errorf("%q became %+v, then %q: %v", text, e, again, err)
			}
			if bytes.ContainsAny(again, "\n\x1b") {
				t.Errorf("%q", again)
			}
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add(string(indexLine(fileID{1, 2, 3, -4, 5}, Digest{6})))
	f.Add("1 2 3 4 5 6 7\n")
	f.Fuzz(func(t *testing.T, text string) {
		id, d, ok := parseIndexLine([]byte(text))
		if ok && string(indexLine(id, d)) != text {
			t.Errorf("%q is read as %+v, %x", text, id, d)
		}
	})
}
