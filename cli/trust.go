package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"golang.org/x/sys/unix"

	"jail/plan"
	"jail/rules"
)

// trustFile holds the digests of the project rule files that may be used. It
// lies in jail's own directory, which no write grant may reach.
const trustFile = "trust.toml"

type trustRecords struct {
	Trusted []trustRecord `toml:"trusted"`
}

type trustRecord struct {
	Path   string `toml:"path"`
	SHA256 string `toml:"sha256"`
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// trusted returns the digest recorded for each path.
func trusted(dir string) (map[string]string, error) {
	path := filepath.Join(dir, trustFile)
	text, err := readRules(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	var rec trustRecords
	if err := toml.Unmarshal(text, &rec); err != nil {
		return nil, &plan.Problem{What: rules.SyntaxProblem(oneLine(path), err).Error(), Hint: "mend the file or remove it; then trust your projects again"}
	}
	known := map[string]string{}
	for _, r := range rec.Trusted {
		known[r.Path] = r.SHA256
	}
	return known, nil
}

// trust is `jail trust`: show the project's rule file and record its digest.
func (a app) trust(args []string) int {
	if status, ok := a.parseOnly("trust", args, usageTrust); !ok {
		return status
	}
	if err := a.recordTrust(); err != nil {
		return a.fail(err, statusFailed)
	}
	return statusOK
}

func (a app) recordTrust() error {
	h, err := host()
	if err != nil {
		return err
	}
	path := filepath.Join(h.Tree.Root, ruleFile)
	text, err := readRules(path)
	if errors.Is(err, fs.ErrNotExist) {
		return a.forgetTrust(configDir(h.Home), path)
	}
	if err != nil {
		return unreadable(path, err)
	}
	if err := parseable(path, text); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s\n", strings.TrimRight(printable(string(text)), "\n"))
	dir := configDir(h.Home)
	if err := record(dir, path, sumOf(text)); err != nil {
		return &plan.Problem{
			What: fmt.Sprintf("the trust can't be recorded in %q: %v", dir, plan.Cause(err)),
			Hint: roomOr(err, "inside a jail nothing can be trusted; outside, make that directory writable"),
		}
	}
	fmt.Fprintf(a.stderr, "jail: trusted %q, sha256 %s\n", path, sumOf(text))
	return nil
}

// forgetTrust drops the record of a file that is not there any more.
func (a app) forgetTrust(dir, path string) error {
	known, err := trusted(dir)
	if err != nil {
		return err
	}
	if known[path] == "" {
		return &plan.Problem{What: fmt.Sprintf("%q does not exist", path), Hint: "`jail init` writes one"}
	}
	if err := record(dir, path, ""); err != nil {
		return &plan.Problem{What: fmt.Sprintf("the trust in %q can't be forgotten: %v", path, plan.Cause(err))}
	}
	fmt.Fprintf(a.stderr, "jail: %q is not there any more; forgotten\n", path)
	return nil
}

// record writes the digest of one path, or drops it, under a lock and by
// renaming, so that two calls at once lose nothing.
func record(dir, path, sum string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lockFor(lock, 5*time.Second); err != nil {
		return err
	}
	known, err := trusted(dir)
	if err != nil {
		return err
	}
	known[path] = sum
	var rec trustRecords
	for p, s := range known {
		if s == "" {
			continue
		}
		rec.Trusted = append(rec.Trusted, trustRecord{Path: p, SHA256: s})
	}
	slices.SortFunc(rec.Trusted, func(x, y trustRecord) int { return strings.Compare(x.Path, y.Path) })
	var out bytes.Buffer
	if err := toml.NewEncoder(&out).Encode(rec); err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, trustFile), out.Bytes())
}

// lockFor waits a bounded time: whoever may read the directory may lock it.
func lockFor(f *os.File, limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(end) {
			return errors.New("another process holds the lock on it")
		}
	}
}

// replaceFile writes a file whole or not at all.
func replaceFile(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".jail-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = io.Copy(tmp, bytes.NewReader(content))
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
