package landlock

import (
	"errors"
	"fmt"
	"os"
	"strings"

	llconf "github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"jail/digest"
	"jail/plan"
)

// Probe returns the kernel's ABI version, and why there is none.
func Probe() (int, plan.Fact) {
	abi, err := ll.LandlockGetABIVersion()
	switch {
	case err == nil && abi >= 1:
		return abi, plan.Fact{OK: true}
	case errors.Is(err, unix.ENOSYS):
		return 0, plan.Fact{
			Why: "the kernel has no Landlock (or a seccomp filter around us hides it)", Remedy: "use Linux 5.13 or later; in a container, a seccomp profile that allows landlock_*",
		}
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, plan.Fact{
			Why: "Landlock is built in but not enabled", Remedy: "boot with landlock in the lsm= list",
		}
	}
	return 0, plan.Fact{Why: fmt.Sprintf("asking for the Landlock version: %v", err)}
}

// FD builds the ruleset in the kernel and returns its descriptor.
//
// Every path is opened once, without following any link, and must still be the
// inode that the plan was proved for; the rule is then added through that
// handle. So a path that is swapped between plan and rule is an error.
func (rs Ruleset) FD() (int, error) {
	rules := make([]llconf.Rule, 0, len(rs.Paths)+2)
	for _, pr := range rs.Paths {
		fd, err := open(pr)
		if err != nil {
			return -1, err
		}
		defer unix.Close(fd)
		rules = append(rules, llconf.PathAccess(pr.Rights, fmt.Sprintf("/proc/self/fd/%d", fd)))
	}
	for _, port := range rs.Connect {
		rules = append(rules, llconf.ConnectTCP(port))
	}
	for _, port := range rs.Bind {
		rules = append(rules, llconf.BindTCP(port))
	}
	fd, _, err := rs.Handled.NewRulesetFD(rules...)
	if err != nil {
		return -1, fmt.Errorf("building the Landlock ruleset: %w", err)
	}
	for _, pr := range rs.Paths {
		if pr.Split == nil {
			continue
		}
		if err := pr.addEntries(fd); err != nil {
			unix.Close(fd)
			return -1, err
		}
	}
	return fd, nil
}

// addEntries adds a rule for each entry of a split directory. There may be a
// thousand of them: they are opened below the directory's own handle, without
// the library's second look at each.
//
// What a name in the directory stands for changes only with the directory's
// ctime, which nobody can set: if it is afterwards what the plan has seen, so was
// every entry.
func (pr PathRule) addEntries(ruleset int) error {
	dir, err := open(pr)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	for _, name := range pr.Split.Entries {
		if err = pr.Split.addEntry(ruleset, dir, name); err != nil {
			err = fmt.Errorf("opening %q in %q for its rule: %w", name, pr.Path, err)
			break
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return fmt.Errorf("looking at %q again: %w", pr.Path, err)
	}
	if unix.TimespecToNsec(st.Ctim) != pr.Split.Changed {
		return &plan.Problem{
			What: fmt.Sprintf("%q was changed while jail was starting", pr.Path),
			Hint: "a package is being installed, perhaps: start again",
		}
	}
	return err
}

func (s Split) addEntry(ruleset, dir int, name string) error {
	base, isDir := strings.CutSuffix(name, "/")
	fd, err := unix.Openat(dir, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	rights := s.File
	if isDir {
		rights = s.Dir
	}
	// A directory right on what is none is EINVAL.
	return ll.LandlockAddPathBeneathRule(ruleset, &ll.PathBeneathAttr{AllowedAccess: uint64(rights), ParentFd: fd}, 0)
}

var errReplaced = errors.New("was replaced while jail was starting")

func open(pr PathRule) (int, error) {
	fd, err := openNoLinks(pr.Path)
	if err != nil {
		return -1, openProblem(pr.Path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("opening %q for its rule: %w", pr.Path, err)
	}
	if !pr.Made && (plan.ID{Dev: st.Dev, Ino: st.Ino}) != pr.ID {
		unix.Close(fd)
		return -1, fmt.Errorf("%q %w", pr.Path, errReplaced)
	}
	if pr.Pin != nil && digest.StateOf(&st) != *pr.Pin {
		unix.Close(fd)
		return -1, fmt.Errorf("%q, whose digest was right, %w", pr.Path, errReplaced)
	}
	return fd, nil
}

func openProblem(path string, err error) error {
	if errors.Is(err, unix.EMFILE) {
		return &plan.Problem{What: "too many open files: each rule needs one while jail starts", Hint: "raise the limit (ulimit -n 256)"}
	}
	return fmt.Errorf("opening %q for its rule: %w", path, err)
}

// openNoLinks opens a real path as a handle. openat2(2) is there from Linux 5.6
// and hidden inside another jail; the fallback proves the same afterwards.
func openNoLinks(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if !errors.Is(err, unix.ENOSYS) {
		return fd, err
	}
	fd, err = unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, err
	}
	if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil || name != path {
		unix.Close(fd)
		return -1, unix.ELOOP
	}
	return fd, nil
}
