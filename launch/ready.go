package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"jail/plan"
)

// makeReady makes what the plan wants to be there: directories to create, files
// to copy once, the private TMPDIR. It returns the plan with their identities,
// the command's environment, and the directory that was made for this run.
func makeReady(p plan.Plan) (_ plan.Plan, env []string, temp string, err error) {
	if p, err = p.WithCreated(makeDir); err != nil {
		return p, nil, "", err
	}
	for _, s := range p.Seeds {
		if err := plant(s); err != nil {
			return p, nil, "", fmt.Errorf("copying %q to %q: %w", s.File, s.To, plan.Cause(err))
		}
	}
	sweep(p.Temp, p.UID)
	if temp, err = privateTemp(p.Temp, p.UID); err != nil {
		return p, nil, "", err
	}
	inside := "/tmp" // what the command calls it
	if !p.Mounts {
		inside = temp
		if p, err = p.WithTemp(temp); err != nil {
			return p, nil, temp, err
		}
	}
	env = append(p.Env, "TMPDIR="+inside)
	for _, c := range p.Private {
		if err := os.Mkdir(filepath.Join(temp, c.Name), 0o700); err != nil {
			return p, nil, temp, err
		}
		env = append(env, c.Variable+"="+filepath.Join(inside, c.Name))
	}
	return p, env, temp, nil
}

// makeDir makes a directory and its parents, for the user alone.
func makeDir(path string) error {
	err := os.MkdirAll(path, 0o700)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EROFS), errors.Is(err, unix.EACCES):
		return &plan.Problem{
			What: fmt.Sprintf("%q can't be made: %v", path, plan.Cause(err)),
			Hint: "a profile keeps caches or state there; make HOME writable, set HOME elsewhere, or write profiles = [\"default\"] in a rule file",
		}
	}
	return fmt.Errorf("making %q: %w", path, plan.Cause(err))
}

// plant copies a file to a place where there is none yet. The source is the
// user's own and lies where the jail can't write.
func plant(s plan.Seed) error {
	if _, err := os.Lstat(s.To); err == nil {
		return nil
	}
	in, err := os.OpenFile(s.File, os.O_RDONLY|unix.O_NONBLOCK, 0) // a fifo must not keep us
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	if fi, err := in.Stat(); err != nil || !fi.Mode().IsRegular() {
		return err
	}
	return copyTo(in, s.To)
}

// copyTo makes a file whole or not at all, and never in the place of another.
func copyTo(in io.Reader, path string) error {
	out, err := os.CreateTemp(filepath.Dir(path), ".jail-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	err = unix.Renameat2(unix.AT_FDCWD, out.Name(), unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// tempPrefix begins the name of every private TMPDIR; the pid and the start
// time of its owner follow, so that a later start knows which ones are left.
const tempPrefix = "jail-tmp-"

// tempName is the beginning for a user, in this pid namespace: a pid of another
// one (a container with the same /tmp) says nothing here, and its owner may well be
// alive. A lock on the directory would not do: a command that took jail's place
// keeps no descriptor of ours.
func tempName(uid int) string {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) != nil {
		st.Ino = 0
	}
	return fmt.Sprintf("%s%d-%d-", tempPrefix, uid, st.Ino)
}

// privateTemp makes the TMPDIR of this run. The name is random at its end: in a
// shared /tmp a guessable one could be taken beforehand.
func privateTemp(base string, uid int) (string, error) {
	dir, err := os.MkdirTemp(base, fmt.Sprintf("%s%d-%s-", tempName(uid), os.Getpid(), startTime(os.Getpid())))
	if err != nil {
		return "", &plan.Problem{
			What: fmt.Sprintf("a private temporary directory can't be made in %q: %v", base, plan.Cause(err)),
			Hint: "make room there, or set TMPDIR to a directory that can be written",
		}
	}
	// Not resolved again: base is real, and who could put a link in the place of
	// what was just made must gain nothing by it.
	return dir, nil
}

// sweep removes private TMPDIRs whose command has ended. It is tidiness: what
// it can't remove stays.
func sweep(base string, uid int) {
	d, err := os.Open(base)
	if err != nil {
		return
	}
	names, _ := d.Readdirnames(-1)
	d.Close()
	prefix := tempName(uid)
	for _, full := range names {
		var pid int
		var start string
		name, ok := strings.CutPrefix(full, prefix)
		if !ok {
			continue
		}
		dir := filepath.Join(base, full)
		if n, err := fmt.Sscanf(strings.ReplaceAll(name, "-", " "), "%d %s", &pid, &start); n != 2 || err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Lstat(dir, &st) != nil || st.Uid != uint32(uid) || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		if now := startTime(pid); now == start || now == "0" && alive(pid) {
			continue
		}
		remove(dir)
	}
}

// alive tells whether a process exists that /proc does not show.
func alive(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// removeTime bounds what a start or an end waits for tidying up: the jail decides
// how much there is to remove. What is left is for a later start.
const removeTime = 300 * time.Millisecond

// remove deletes a tree, or a part of it that can be deleted in the time.
func remove(dir string) {
	done := make(chan struct{})
	go func() {
		removeAll(dir)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(removeTime):
	}
}

// openUp gives the owner its rights on a directory back; a link is not followed.
func openUp(dir string) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o700)
	unix.Close(fd)
}

// maxChmod is how deep directories are made writable before they are removed.
const maxChmod = 32

// removeAll deletes a tree in which directories may have lost their write bits,
// as Go's module cache does. A process that outlived its jail may still be at
// work in there: an os.Root never leads outside, whatever is swapped for a link.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	openUp(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	defer root.Close()
	fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case d == nil || !d.IsDir():
			return nil
		case strings.Count(path, "/") > maxChmod:
			return fs.SkipDir
		}
		root.Chmod(path, 0o700)
		return nil
	})
	os.RemoveAll(dir)
}
