package seal

import (
	"errors"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// item is a copy in the cache.
type item struct {
	name  string
	size  int64
	used  time.Time
	links uint64 // more than one: a run has it
}

// items lists the cache.
func (s *Store) items() (out []item, total int64) {
	for _, name := range s.list("cache") {
		fi, err := s.root.Lstat(path.Join("cache", name))
		if err != nil {
			continue
		}
		i := item{name: name, size: fi.Size(), used: fi.ModTime(), links: uint64(rawStat(fi).Nlink)}
		out = append(out, i)
		total += i.size
	}
	return out, total
}

// grown counts what was added and trims the cache from time to time: listing it
// for each seal would cost more than the seal. It returns by how many bytes the
// cache is over its cap all the same, because runs have them.
func (s *Store) grown(size int64) (over int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.added += size; s.counted && s.added < s.cap/16 {
		return 0
	}
	s.added, s.counted = 0, true
	s.trim(s.cap - s.cap/16)
	_, total := s.items()
	return total - s.cap
}

// settleUp trims the cache if this process has made it larger.
func (s *Store) settleUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counted {
		s.trim(s.cap)
	}
}

// maxCopies bounds the cache where copies are so small that their bytes say nothing
// of the room they take.
const maxCopies = 1 << 16

// trim removes the copies that were unused for longest until the cache is no
// larger than limit and has no more of them than the store keeps. What a run has is
// not removed. A run that takes a copy at this moment keeps the inode it took; only
// the name in the cache is lost.
func (s *Store) trim(limit int64) (freed int64, err error) {
	dir, err := s.root.Open("cache")
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return 0, nil // another jail is at it
	}
	items, total := s.items()
	slices.SortFunc(items, func(x, y item) int { return x.used.Compare(y.used) })
	left := len(items)
	for _, i := range items {
		if total <= limit && left <= s.most {
			break
		}
		if i.links > 1 {
			continue
		}
		if err = s.root.Remove(path.Join("cache", i.name)); err == nil {
			total, freed, left = total-i.size, freed+i.size, left-1
		} else if !os.IsNotExist(err) {
			return freed, err
		}
	}
	return freed, nil
}

// Collected is what Collect did, in bytes.
type Collected struct {
	Freed int64
	Kept  int64 // used by runs that live
}

// Collect empties the cache, except for what living runs have.
func (s *Store) Collect() (Collected, error) {
	s.sweep()
	freed, err := s.trim(-1)
	if err == nil {
		err = s.index.forget()
	}
	_, kept := s.items()
	return Collected{freed, kept}, err
}
