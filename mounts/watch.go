package mounts

import (
	"errors"
	"io/fs"
	"os"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Dropped yields whenever the mounts of this namespace have changed and some
// cover is missing. Inside, nobody can change mounts: it is the host, whose
// rename or unlink of a covered file drops the mount in every namespace.
func (l *Layout) Dropped() func(yield func() bool) {
	return func(yield func() bool) {
		f, err := os.Open("/proc/self/mountinfo")
		if err != nil || len(l.Covers) == 0 {
			return
		}
		defer f.Close()
		poll := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}
		for {
			if len(l.Missing()) > 0 && !yield() {
				return
			}
			// poll(2) on mountinfo: POLLPRI and POLLERR tell of a change since the
			// file was opened or last polled (proc(5)).
			if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}
}

// Missing lists the covers that are no mount any more although something is
// there to be covered, parents first. Instead of a copy the new file itself is
// covered, and protected: by now the place of the copy is the jail's.
func (l *Layout) Missing() []Cover {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil
	}
	there := map[string]bool{}
	for _, m := range mounts {
		there[m.Mountpoint] = true
	}
	var out []Cover
	for _, c := range l.Covers {
		if _, err := os.Lstat(c.Path); !there[c.Path] && !errors.Is(err, fs.ErrNotExist) {
			if c.Kind == Copy {
				c.Kind = Protect
			}
			out = append(out, c)
		}
	}
	return out
}
