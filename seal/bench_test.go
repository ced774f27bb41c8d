package seal

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
)

const benchSize = 20 << 20

func benchFile(b *testing.B) (path string, text []byte) {
	b.Helper()
	text = make([]byte, benchSize)
	rand.Read(text)
	return write(b, filepath.Join(tempDir(b), "x"), string(text)), text
}

// benchRun starts a run that lists what a jail would: where it may write.
func benchRun(b *testing.B, s *Store, path string) *Run {
	b.Helper()
	r := newRun(b, s)
	r.Options.MayList = func(dir string) bool { return dir == filepath.Dir(path) }
	return r
}

// A file that is new: copied and hashed.
func BenchmarkSeal20MB(b *testing.B) {
	path, text := benchFile(b)
	s := openStore(b, filepath.Join(tempDir(b), "seal"), 4*benchSize)
	r := benchRun(b, s, path)
	b.SetBytes(benchSize)
	for b.Loop() {
		b.StopTimer()
		text[0]++
		text[1] += text[0] & 1
		if err := os.WriteFile(path, text, 0o755); err != nil {
			b.Fatal(err)
		}
		r.Close()
		r = benchRun(b, s, path)
		b.StartTimer()
		if program(b, r, path).Cached {
			b.Fatal("it was not new")
		}
	}
}

// The first use in a run of what an earlier run sealed: compared.
func BenchmarkSealVerified20MB(b *testing.B) {
	path, _ := benchFile(b)
	s := openStore(b, filepath.Join(tempDir(b), "seal"), 0)
	r := benchRun(b, s, path)
	program(b, r, path)
	b.SetBytes(benchSize)
	for b.Loop() {
		b.StopTimer()
		r.Close()
		r = benchRun(b, s, path)
		b.StartTimer()
		if !program(b, r, path).Cached {
			b.Fatal("it was copied")
		}
	}
}

// The next use in the same run: only looked at, with its neighbours.
func BenchmarkSealAgain(b *testing.B) {
	path, _ := benchFile(b)
	age(b, filepath.Dir(path))
	r := benchRun(b, openStore(b, filepath.Join(tempDir(b), "seal"), 0), path)
	program(b, r, path)
	age(b, path)
	f := open(b, path)
	for b.Loop() {
		if s, err := r.Program(f, path); err != nil || !s.Cached {
			b.Fatal(s, err)
		}
	}
}

// The start of a run with an old runner of this size.
func BenchmarkRunner20MB(b *testing.B) {
	path, _ := benchFile(b)
	s := openStore(b, filepath.Join(tempDir(b), "seal"), 0)
	f := open(b, path)
	for b.Loop() {
		r, err := s.NewRun()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.AddRunner(f); err != nil {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
