package digest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jail/digest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func hexOf(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// old writes a file and waits until its ctime is settled: it can't be set back.
func old(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
	time.Sleep(2100 * time.Millisecond)
}

func sum(t *testing.T, c *digest.Cache, path string) string {
	t.Helper()
	s, _, err := c.Sum(path)
	must(t, err)
	return s
}

// A settled file is remembered over a run; the proof is a wrong digest put into
// the cache by hand. Any change of the file is noticed.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	file, cache := filepath.Join(dir, "f"), filepath.Join(dir, "sub", "cache")
	old(t, file, "one")
	c := digest.Open(cache)
	if got := sum(t, c, file); got != hexOf("one") {
		t.Fatalf("digest %s", got)
	}
	c.Save()
	text, err := os.ReadFile(cache)
	must(t, err)
	wrong := strings.Repeat("0", 64)
	must(t, os.WriteFile(cache, []byte(strings.ReplaceAll(string(text), hexOf("one"), wrong)), 0o600))
	if got := sum(t, digest.Open(cache), file); got != wrong {
		t.Errorf("not remembered: %s", got)
	}
	must(t, os.WriteFile(file, []byte("two"), 0o600)) // the same size
	if got := sum(t, digest.Open(cache), file); got != hexOf("two") {
		t.Errorf("the change is not noticed: %s", got)
	}
	must(t, os.Chtimes(file, time.Unix(1, 0), time.Unix(1, 0)))
	if got := sum(t, digest.Open(cache), file); got != hexOf("two") {
		t.Errorf("with old times: %s", got)
	}
}

// What has just changed is not remembered: the next change may have its time.
func TestYoungFileIsNotRemembered(t *testing.T) {
	dir := t.TempDir()
	file, cache := filepath.Join(dir, "f"), filepath.Join(dir, "cache")
	must(t, os.WriteFile(file, []byte("one"), 0o600))
	c := digest.Open(cache)
	sum(t, c, file)
	c.Save()
	if _, err := os.Stat(cache); err == nil {
		t.Error("a digest was saved")
	}
}

func TestDamagedCache(t *testing.T) {
	dir := t.TempDir()
	file, cache := filepath.Join(dir, "f"), filepath.Join(dir, "cache")
	must(t, os.WriteFile(file, []byte("one"), 0o600))
	for _, text := range []string{"", "x", strings.Repeat("0", 64) + " 1 2 3", "\x00\n\n", strings.Repeat("0", 64) + " a b c d e\n"} {
		must(t, os.WriteFile(cache, []byte(text), 0o600))
		if got := sum(t, digest.Open(cache), file); got != hexOf("one") {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
	must(t, os.Symlink("f", filepath.Join(dir, "l")))
	for _, path := range []string{dir, filepath.Join(dir, "l"), filepath.Join(dir, "none"), "/dev/null"} {
		if s, _, err := digest.Open("").Sum(path); err == nil {
			t.Errorf("%s has the digest %s", path, s)
		}
	}
}
