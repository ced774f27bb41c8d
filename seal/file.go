package seal

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// settle is how long a file must have been left alone before its time stamps
// tell two contents apart: the kernel's coarse clock ticks every 1 to 10 ms, so
// what is written right after hashing may get the ctime that was seen.
const settle = 20 * time.Millisecond

// fileID says which file, in which state. ctime can't be set by the owner, so
// as long as nobody has the file open for writing, equal means same content.
type fileID struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // nanoseconds
}

func identify(st *syscall.Stat_t) fileID {
	return fileID{uint64(st.Dev), st.Ino, st.Size, unix.TimespecToNsec(unix.Timespec(st.Mtim)), unix.TimespecToNsec(unix.Timespec(st.Ctim))}
}

// settled tells whether the stamps can be trusted for content read from now on.
func (id fileID) settled(now time.Time) bool { return now.UnixNano()-id.ctime > int64(settle) }

// subject is a file that is to be sealed, while it is looked at.
type subject struct {
	f  *os.File
	id fileID
	// quiet says that a lease proves that nobody has the file open for writing.
	// It is kept until release: who opens the file for writing meanwhile waits,
	// for the time of a copy. Without it nothing is remembered of the file: a
	// shared mapping that is dirty already is written without a new ctime.
	quiet bool
	start time.Time
}

// inspect looks at a file and refuses what is never sealed.
func inspect(f *os.File, maxSize int64) (*subject, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, &Refusal{Unreadable, err}
	}
	st := rawStat(fi)
	switch {
	case !fi.Mode().IsRegular():
		return nil, &Refusal{Reason: NotRegular}
	case st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0:
		return nil, &Refusal{Reason: SetID}
	case st.Size > maxSize:
		return nil, &Refusal{Reason: TooLarge}
	}
	s := &subject{f: f, start: time.Now()}
	if s.quiet, err = lease(f); err != nil {
		return nil, err
	}
	// Stamps count from the lease on.
	if fi, err = f.Stat(); err != nil {
		s.release()
		return nil, &Refusal{Unreadable, err}
	}
	s.id = identify(rawStat(fi))
	return s, nil
}

func (s *subject) release() {
	if s.quiet {
		unix.FcntlInt(s.f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	}
}

// changed tells whether the content may not be what inspect saw. While the lease
// is held and nobody waits to break it, it is: ctime alone moves with each link
// and rename, and cargo makes links of what it has just built.
func (s *subject) changed() bool {
	if s.quiet {
		if held, err := unix.FcntlInt(s.f.Fd(), unix.F_GETLEASE, 0); err == nil && held == unix.F_RDLCK {
			return false
		}
	}
	fi, err := s.f.Stat()
	return err != nil || identify(rawStat(fi)) != s.id
}

// lease takes a read lease, which the kernel gives only if nobody has the file
// open, or mapped, for writing. Where there are none (NFS, FUSE), or the file is
// another user's, it says so.
//
// The kernel would tell us of writers that wait by SIGIO, and interrupt system
// calls of other threads: nobody is to get it.
func lease(f *os.File) (bool, error) {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	switch {
	case err == nil:
		unix.FcntlInt(f.Fd(), unix.F_SETOWN, 0)
		return true, nil
	case errors.Is(err, unix.EAGAIN) && !remote(f):
		return false, &Refusal{Busy, unix.ETXTBSY}
	case errors.Is(err, unix.EBADF):
		return false, &Refusal{Unreadable, err}
	}
	return false, nil
}

// remote tells whether EAGAIN only means that the server gave no delegation.
func remote(f *os.File) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return true
	}
	return false
}
