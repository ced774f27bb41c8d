package seal

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// levels is how many directories above a program are mirrored by name. What lies
// beside the uppermost is linked too, so that a program reaches four levels up:
// cargo's target/debug/deps/x finds what is beside target, npm's
// @scope/pkg/lib/tsgo other packages, build/bin/app $ORIGIN/../lib.
const levels = 3

// mirror makes programs find what lies beside them. A program takes its place
// from /proc/self/exe ($ORIGIN, current_exe()), and that is the seal. So the seal
// of /home/ann/p/target/debug/deps/x is N/target/debug/deps/x; what else is in
// deps, debug, target and p is linked by symbolic links of the same names. N
// stands for /home/ann/p: programs with the same N share the directories.
//
// A link gives no rights: the kernel asks for those of what it leads to, which is
// on a noexec mount, and for Landlock at its own path. Links lead into the jail's
// own view by absolute names; jail itself never follows them.
//
// What a program makes anew beside itself by that name, rather than by the path
// it was called by, is refused: the mirror is read-only. It writes files that are
// there, and into directories, through the links.
//
// A seal among the neighbours may be older than its original. Run.Original gives
// the original's path, for a supervisor that sees somebody execute it.
type mirror struct {
	run  *Run
	most int // maxNeighbours

	mu    sync.Mutex
	roots map[string]*folder // by the original's path
	count int                // of roots so far
}

// folder is a directory of the mirror.
type folder struct {
	original string // the directory that it stands for
	name     string // where it is, below the run's home
	seen     fileID // the original's state when its names were last read
	trusted  bool   // seen tells later changes
	listed   listing
	entries  map[string]entry
}

// listing says whether the jail may list a directory. It is asked once.
type listing int

const (
	unasked listing = iota
	listable
	hidden
)

// entry is one name in a folder: a folder, a seal, or else a link.
type entry struct {
	folder *folder
	seal   *object
}

func (e entry) link() bool { return e.folder == nil && e.seal == nil }

// split takes a real path apart: /a/b/c/d/e/x is below /a/b, in c, d and e.
func split(original string) (base string, parts []string, err error) {
	if !filepath.IsAbs(original) || filepath.Clean(original) != original || original == "/" || strings.ContainsRune(original, 0) {
		return "", nil, fmt.Errorf("%q is not the real path of a program", original)
	}
	parts = strings.Split(original[1:], "/")
	up := max(0, len(parts)-1-levels)
	return "/" + path.Join(parts[:up]...), parts[up:], nil
}

// place puts a copy where a program of that path belongs, with its neighbours,
// and returns its name below the run's home.
func (m *mirror) place(o *object, original string) (string, error) {
	base, parts, err := split(original)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.walk(base, parts)
	if errors.Is(err, errOther) {
		// What was a program is a directory now, or the other way round. What runs
		// from the old mirror keeps it.
		delete(m.roots, base)
		at, err = m.walk(base, parts)
	}
	if err != nil {
		return "", err
	}
	file := parts[len(parts)-1]
	if err := m.put(at, file, o); err != nil {
		return "", err
	}
	return path.Join(at.name, file), nil
}

// errOther says that a name is taken by something of another kind.
var errOther = errors.New("another kind of file has this name")

// walk finds or makes the folders of a program and brings them up to date.
func (m *mirror) walk(base string, parts []string) (*folder, error) {
	at, err := m.base(base)
	if err != nil {
		return nil, err
	}
	last := len(parts) - 1
	for _, name := range parts[:last] {
		if err := m.refresh(at, name); err != nil {
			return nil, err
		}
		if at, err = m.enter(at, name); err != nil {
			return nil, err
		}
	}
	if at.entries[parts[last]].folder != nil {
		return nil, errOther
	}
	return at, m.refresh(at, parts[last])
}

// base is the folder at the top of a mirror.
func (m *mirror) base(original string) (*folder, error) {
	if at := m.roots[original]; at != nil {
		return at, nil
	}
	m.count++
	at := &folder{original: original, name: fmt.Sprintf("%s/%d", execDir, m.count), entries: map[string]entry{}}
	if err := m.run.home.Mkdir(at.name, 0o700); err != nil {
		return nil, err
	}
	if m.roots == nil {
		m.roots = map[string]*folder{}
	}
	m.roots[original] = at
	return at, nil
}

// enter finds or makes a folder in another. It is filled before it takes the
// place of the link that has its name so far, for somebody may be using that.
func (m *mirror) enter(parent *folder, name string) (*folder, error) {
	had, taken := parent.entries[name]
	if had.folder != nil {
		return had.folder, nil
	}
	if had.seal != nil {
		return nil, errOther
	}
	at := &folder{original: path.Join(parent.original, name), name: m.run.temp(), entries: map[string]entry{}}
	if err := m.run.home.Mkdir(at.name, 0o700); err != nil {
		return nil, err
	}
	err := m.refresh(at, "")
	if err == nil {
		err = m.swap(at.name, path.Join(parent.name, name), taken)
	}
	if err != nil {
		m.run.home.RemoveAll(at.name)
		return nil, err
	}
	at.name = path.Join(parent.name, name)
	parent.entries[name] = entry{folder: at}
	return at, nil
}

// swap moves a folder from its temporary name to where a link may be.
func (m *mirror) swap(from, to string, taken bool) error {
	if !taken {
		return m.run.home.Rename(from, to)
	}
	home := int(m.run.lock.Fd())
	err := unix.Renameat2(home, from, home, to, unix.RENAME_EXCHANGE)
	if err == nil {
		return m.run.home.Remove(from) // the link
	}
	// Some file systems can't exchange. For a moment there is neither.
	if err := m.run.home.Remove(to); err != nil {
		return err
	}
	return m.run.home.Rename(from, to)
}

// put gives a copy its name in a folder. Renaming leaves a program that runs from
// an older copy its inode.
func (m *mirror) put(at *folder, name string, o *object) error {
	if had := at.entries[name].seal; had != nil && had.digest == o.digest {
		return nil
	}
	temp := m.run.temp()
	if err := m.run.home.Link(o.name(), temp); err != nil {
		return err
	}
	defer m.run.home.Remove(temp) // renaming one link of a file to another does nothing
	if err := m.run.home.Rename(temp, path.Join(at.name, name)); err != nil {
		return err
	}
	at.entries[name] = entry{seal: o}
	return nil
}

// Original gives the path of the original of a seal, from a path below Dir. It
// may be gone or have other content by now.
func (r *Run) Original(sealed string) (string, bool) {
	rel, err := filepath.Rel(filepath.Join(r.store.path, "runs", r.id), sealed)
	if err != nil {
		return "", false
	}
	r.mirror.mu.Lock()
	defer r.mirror.mu.Unlock()
	for _, at := range r.mirror.roots {
		below, ok := strings.CutPrefix(rel, at.name+"/")
		if !ok {
			continue
		}
		for part, rest, more := strings.Cut(below, "/"); at != nil; part, rest, more = strings.Cut(rest, "/") {
			e := at.entries[part]
			if !more {
				return path.Join(at.original, part), e.seal != nil
			}
			at = e.folder
		}
	}
	return "", false
}

// refresh links what is new in the original of a folder and drops the links to
// what is gone. An unchanged directory costs one open. except is the name that
// becomes something else than a link.
func (m *mirror) refresh(at *folder, except string) error {
	if !m.mayList(at) {
		return nil
	}
	dir, err := openDir(m.run.Options.Root, at.original)
	if err != nil {
		return nil // gone, or not a directory any more: what is linked stays
	}
	defer dir.Close()
	names, err := at.news(dir, m.most)
	if err != nil || names == nil {
		return err
	}
	err = m.relink(at, names, except)
	at.trusted = at.trusted && err == nil
	return err
}

func (m *mirror) mayList(at *folder) bool {
	if at.listed == unasked {
		at.listed = hidden
		if may := m.run.Options.MayList; may != nil && may(at.original) {
			at.listed = listable
		}
	}
	return at.listed == listable
}

// openDir opens a directory of the jail's for listing. Its path was real when the
// program was found; a link that took its place since is not followed.
func openDir(root *os.File, name string) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NONBLOCK,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	if root == nil {
		own, err := os.Open("/")
		if err != nil {
			return nil, err
		}
		defer own.Close()
		root = own
	}
	fd, err := unix.Openat2(int(root.Fd()), "."+name, &how)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
