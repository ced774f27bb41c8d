package mounts

import (
	"errors"
	"io/fs"
	"os"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// watchEvery is how often it is looked for what the kernel does not tell of, in
// milliseconds: a directory that the host moves takes its mounts along, and what
// is put in its place lies bare. Under load Linux 6.18 was also seen to drop a
// cover without a word to poll(2), three jails at once on two processors.
const watchEvery = 100

// Dropped yields whenever some cover is missing, and every so often while one can't be
// put back. Inside, nobody can change mounts: it is the host, whose rename or unlink of
// a covered file drops the mount in every namespace.
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
			if _, err := unix.Poll(poll, watchEvery); err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}
}

// Missing lists the covers that are no mount any more although something is
// there to be covered, parents first. Instead of a copy the new file itself is
// covered, and protected: by now the place of the copy is the jail's. What was
// reopened stays closed, since what the host put there is not what it was.
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
		if _, err := os.Lstat(c.Path); c.Kind != Reopen && !there[c.Path] && !errors.Is(err, fs.ErrNotExist) {
			if c.Kind == Copy {
				c.Kind = Protect
			}
			out = append(out, c)
		}
	}
	return out
}
