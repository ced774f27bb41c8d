package mounts

import (
	"errors"
	"os"

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
	var out []Cover
	for _, c := range l.Covers {
		if c.Kind != Reopen && isBare(c.Path) {
			if c.Kind == Copy {
				c.Kind = Protect
			}
			out = append(out, c)
		}
	}
	return out
}

// isBare tells whether something is at path and no mount lies on it (statx(2),
// STATX_ATTR_MOUNT_ROOT, Linux 5.8). Reading the mount table costs a hundred times
// as much.
func isBare(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE, &st)
	if err != nil {
		return !errors.Is(err, unix.ENOENT)
	}
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0
}
