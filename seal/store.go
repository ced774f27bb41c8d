package seal

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// DefaultCap is how many bytes the cache keeps if nobody says otherwise.
const DefaultCap = 2 << 30

// Store is the directory that all runs of a user share.
type Store struct {
	path  string   // real path
	root  *os.Root // handle of it: no name below leads out
	cap   int64
	most  int // copies in the cache
	index *index

	mu      sync.Mutex
	added   int64 // since the cache was last trimmed
	counted bool
}

// Problem is something about the store's directory that the user can mend.
type Problem struct {
	What, Hint string
}

func (p *Problem) Error() string { return p.What }

// Open opens the store in dir, and makes it if it is not there. cap is the size
// of the cache in bytes; 0 means DefaultCap.
func Open(dir string, capBytes int64) (*Store, error) {
	if capBytes <= 0 {
		capBytes = DefaultCap
	}
	// Where a link leads nobody has asked whether the jail may write there.
	if fi, err := os.Lstat(dir); err == nil && fi.Mode()&os.ModeSymlink != 0 {
		return nil, &Problem{What: fmt.Sprintf("%q is a symbolic link", dir), Hint: "remove it; XDG_STATE_HOME says where copies are kept"}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	s := &Store{path: real, root: root, cap: capBytes, most: maxCopies, index: &index{root: root}}
	if err := s.prepare(); err != nil {
		root.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) prepare() error {
	if err := s.private(); err != nil {
		return err
	}
	for _, name := range []string{"cache", "journal", "runs"} {
		if err := s.root.Mkdir(name, 0o700); err != nil && !os.IsExist(err) {
			return err
		}
		fi, err := s.root.Lstat(name)
		if err == nil && !fi.IsDir() {
			err = &Problem{What: fmt.Sprintf("%q is not a directory", filepath.Join(s.path, name)), Hint: "remove it"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close gives the handles back.
func (s *Store) Close() error {
	s.index.close()
	return s.root.Close()
}

// private refuses a store that somebody else could put things into: its own
// directory must be the user's and writable by nobody else, and in none above may
// a stranger replace it.
func (s *Store) private() error {
	fi, err := s.root.Stat(".")
	if err != nil {
		return err
	}
	st := rawStat(fi)
	if st.Uid != uint32(os.Geteuid()) {
		return &Problem{
			What: fmt.Sprintf("%q belongs to user %d", s.path, st.Uid),
			Hint: "what executes is kept there; remove it or give it to yourself",
		}
	}
	if st.Mode&0o022 != 0 {
		return &Problem{
			What: fmt.Sprintf("%q may be written by others (mode %03o)", s.path, st.Mode&0o777),
			Hint: fmt.Sprintf("somebody may have put something there: remove it, or look and `chmod 700 %s`", s.path),
		}
	}
	for dir := filepath.Dir(s.path); ; dir = filepath.Dir(dir) {
		if err := trustedParent(dir); err != nil {
			return err
		}
		if dir == "/" {
			return nil
		}
	}
}

// overflow is how the kernel shows users that a user namespace does not map: root
// of a container's host among them.
const overflow = 65534

// trustedParent refuses a directory whose names strangers may change. A group
// that may write is accepted: many systems give each user a group of their own
// and a umask of 002.
func trustedParent(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if st.Uid != 0 && st.Uid != overflow && st.Uid != uint32(os.Geteuid()) {
		return &Problem{
			What: fmt.Sprintf("%q belongs to user %d, who could replace the sealed files below it", dir, st.Uid),
			Hint: "keep the state directory below a directory of your own",
		}
	}
	if st.Mode&0o002 != 0 && st.Mode&unix.S_ISVTX == 0 {
		return &Problem{
			What: fmt.Sprintf("everybody may replace what is in %q, the sealed files included", dir),
			Hint: fmt.Sprintf("`chmod o-w %s`", dir),
		}
	}
	return nil
}

// rawStat is what the kernel said behind a FileInfo.
func rawStat(fi os.FileInfo) *syscall.Stat_t { return fi.Sys().(*syscall.Stat_t) }
