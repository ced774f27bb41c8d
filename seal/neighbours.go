package seal

import (
	"errors"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// maxNeighbours is how many names of a directory are linked. Of a larger one it
// is the first ones that the kernel names.
const maxNeighbours = 10000

// news reads the names in a directory; none if it is as it was.
func (at *folder) news(dir *os.File, most int) ([]string, error) {
	fi, err := dir.Stat()
	if err != nil {
		return nil, err
	}
	id := identify(rawStat(fi))
	if at.trusted && id == at.seen {
		return nil, nil
	}
	at.seen, at.trusted = id, id.settled(time.Now())
	names, _ := dir.Readdirnames(most) // none in an empty directory, or one that vanished
	if len(names) > 0 {
		return names, nil
	}
	return []string{}, nil
}

// relink makes the links of a folder those of names. Folders and seals stay.
func (m *mirror) relink(at *folder, names []string, except string) error {
	dir, err := m.run.home.OpenRoot(at.name)
	if err != nil {
		return err
	}
	defer dir.Close()
	now := make(map[string]bool, len(names))
	for _, name := range names {
		now[name] = true
		if _, ok := at.entries[name]; ok || name == except {
			continue
		}
		err := dir.Symlink(path.Join(at.original, name), name)
		if errors.Is(err, unix.ENAMETOOLONG) {
			continue // nobody can open that by its path either
		}
		if err != nil {
			return err
		}
		at.entries[name] = entry{}
	}
	for name, e := range at.entries {
		if e.link() && !now[name] {
			if err := dir.Remove(name); err != nil && !isGone(err) {
				return err
			}
			delete(at.entries, name)
		}
	}
	return nil
}
