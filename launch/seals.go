package launch

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"jail/digest"
	"jail/landlock"
	"jail/mounts"
	"jail/plan"
	"jail/runner"
	"jail/seal"
	"jail/seccomp"
	"jail/supervise"
	"jail/trace"
)

// seals is where this run keeps what it has sealed, and who seals it. Nothing is
// made before the first file is sealed.
type seals struct {
	plan  plan.Plan  // as the jail sees the file system
	start seal.Entry // says whose run this is
	hand  *os.File   // to init
	root  *os.File   // the jail's root directory

	tracer *trace.Tracer // nil: the jail is not traced

	digesting sync.Mutex
	digests   *digest.Cache // of denied commands

	opening sync.Mutex
	failed  error
	store   *seal.Store
	run     *seal.Run
	runner  *os.File // jail's own binary, where the jail may execute it

	unrecorded sync.Once
}

// newSeals is for the run of a command in a project. Of the command the journal has
// the name alone: arguments may be keys.
func newSeals(hand *os.File, project, command string) *seals {
	start := seal.Entry{Time: time.Now(), PID: os.Getpid(), Parent: command, Path: project, Decision: seal.Started}
	return &seals{start: start, hand: hand, digests: digest.Open("")}
}

// open makes the run's directory and has init put it in place, once.
func (s *seals) open() error {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.runner == nil && s.failed == nil {
		if err := s.make(); err != nil {
			s.failed = sealsProblem(s.plan.State, err)
		}
	}
	return s.failed
}

// begin makes the run's directory and its journal, of which the jail sees nothing
// yet, once.
func (s *seals) begin() error {
	if s.run != nil {
		return nil
	}
	store, err := seal.Open(filepath.Join(s.plan.State, "seal"), 0)
	if err != nil {
		return err
	}
	run, err := store.NewRun()
	if err != nil {
		return errors.Join(err, store.Close())
	}
	s.store, s.run = store, run
	s.write(s.start)
	return nil
}

func (s *seals) make() error {
	if err := s.begin(); err != nil {
		return err
	}
	s.run.Options = seal.Options{Root: s.root, Refuse: s.refuse, MayList: func(dir string) bool { return s.plan.Access(dir)&plan.Read != 0 }}
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer exe.Close()
	path, err := s.run.AddRunner(exe)
	if err != nil {
		return err
	}
	if err := attach(s.hand, s.run.Dir()); err != nil {
		return err
	}
	// On the jail's own mount: Landlock judges it by the way to it.
	if s.runner, err = os.Open(fmt.Sprintf("/proc/self/fd/%d%s", s.root.Fd(), s.inside(path))); err != nil {
		return err
	}
	return seal.CloseRunner(path)
}

// openRunner returns the runner to be given to a caller of execve. It lies in the
// run's directory: what the rules give no place in the jail has none.
func (s *seals) openRunner() (*os.File, error) {
	if !s.plan.HasPlace() {
		return nil, supervise.ErrNoRunner
	}
	err := s.open()
	return s.runner, err
}

// inside is the name in the jail of a file of the run's directory.
func (s *seals) inside(path string) string {
	return mounts.SealsPath(strings.TrimPrefix(path, s.run.Dir()))
}

// original is what a seal in the jail was made of.
func (s *seals) original(path string) (string, bool) {
	rel, ok := strings.CutPrefix(path, mounts.SealsPath("")+"/")
	if !ok || s.open() != nil {
		return "", false
	}
	return s.run.Original(filepath.Join(s.run.Dir(), rel))
}

// sealsProblem says where seals would have been, and what can be done. There is no
// errno in it: one would reach the caller in its place, and say nothing.
func sealsProblem(dir string, err error) error {
	var p *seal.Problem
	if errors.As(err, &p) {
		return fmt.Errorf("%s\njail: hint: %s", p.What, p.Hint)
	}
	return fmt.Errorf("%q, where copies of what is built here are kept: %v\njail: hint: set XDG_STATE_HOME to a directory on a file system that is writable and not noexec", dir, plan.Cause(err))
}

func (s *seals) close() {
	if s.runner != nil {
		s.runner.Close()
	}
	if s.run != nil {
		s.run.Close()
	}
	if s.store != nil {
		s.store.Close()
	}
}

// domain is what artifacts run under.
func (s *seals) domain(ruleset *os.File) (d supervise.Domain, err error) {
	a := s.plan.Artifacts
	d = supervise.Domain{Ruleset: ruleset, Drop: a.Drop}
	if rules := seccomp.Artifacts(s.plan); len(rules) > 0 {
		if d.Filter, err = seccomp.Program(rules); err != nil {
			return d, err
		}
	}
	for _, l := range limits(a.Limits) {
		d.Limits = append(d.Limits, runner.Limit(l))
	}
	return d, nil
}

// serve answers the jail's calls until all of it has ended. Whatever goes wrong,
// a call that nobody answers fails.
func (s *seals) serve(init int, listener, ruleset *os.File) error {
	l := seccomp.NewListener(listener)
	defer l.Close()
	d, err := s.domain(ruleset)
	if err != nil {
		return err
	}
	root, err := os.OpenFile(fmt.Sprintf("/proc/%d/root", init), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("the jail's root directory: %w", err)
	}
	defer root.Close()
	s.root = root
	ports, err := s.ports()
	if err != nil {
		return err
	}
	o := supervise.Options{
		Runner: s.openRunner, Runs: plan.SealsDir, Original: s.original, Domain: d, Guides: guides(s.plan),
		Denied: s.denied, Tracer: s.tracer,
		Writable: func(path string) bool { return s.plan.Access(path)&plan.Write != 0 },
		Sockets:  supervise.Sockets{Allowed: s.plan.Unix, Ports: ports},
		Tell:     func(line string) { fmt.Fprintln(os.Stderr, line) },
	}
	if !s.plan.Artifacts.Run.Off {
		o.Program = s.program
	} else if s.plan.Artifacts.Told {
		o.Unsealed = s.unsealed
	}
	if !s.plan.Artifacts.Libraries.Off {
		o.Library = s.library
	}
	return supervise.Serve(l, o)
}

// ports is the ruleset under which connections are made on behalf, nil if the
// rules leave ports alone.
func (s *seals) ports() (*os.File, error) {
	rs, ok := landlock.Connections(s.plan, s.plan.ABI)
	if !ok {
		return nil, nil
	}
	fd, err := rs.FD()
	return os.NewFile(uintptr(fd), "ports"), err
}

// guides words the advice of rule files.
func guides(p plan.Plan) []supervise.Guide {
	var out []supervise.Guide
	for _, g := range p.Guides {
		out = append(out, supervise.Guide{Words: g.Match, Refusal: supervise.Refusal{
			Key: g.From.String(), Message: g.Message, Short: fmt.Sprintf("%s: see above (%s)", g.Match[0], g.From), Status: uint8(g.Status),
		}})
	}
	return out
}

// denied words why a command may not run.
func (s *seals) denied(path string) (supervise.Refusal, bool) {
	message, at, ok := s.plan.RefusedCommand(path)
	name := filepath.Base(path)
	return supervise.Refusal{Key: name, Message: message, Short: fmt.Sprintf("%s is denied (%s)", name, at)}, ok
}

// refuse keeps the bytes of denied commands from being sealed, under any name.
func (s *seals) refuse(sum seal.Digest, size int64) error {
	for _, d := range s.plan.Denied {
		if d.Size != size {
			continue
		}
		s.digesting.Lock()
		own, _, err := s.digests.Sum(d.Path)
		s.digesting.Unlock()
		if err != nil {
			return err
		}
		if own == hex.EncodeToString(sum[:]) {
			return errors.New(d.Words("this"))
		}
	}
	return nil
}

func (s *seals) program(r supervise.Request) (string, error) {
	return s.sealed(r, func() (seal.Sealed, error) { return s.run.Program(r.File, r.Path) })
}

func (s *seals) library(r supervise.Request) (string, error) {
	return s.sealed(r, func() (seal.Sealed, error) { return s.run.Library(r.File) })
}

// sealed has a file sealed, unless a rule says that it never is.
func (s *seals) sealed(r supervise.Request, make func() (seal.Sealed, error)) (string, error) {
	if d, ok := s.plan.Artifacts.Denies(r.Path); ok {
		s.record(r, seal.Sealed{}, "refused", d.At.String())
		return "", refusedFile(r, fmt.Sprintf("[artifact] deny at %s", d.At))
	}
	if err := s.open(); err != nil {
		return "", err
	}
	sealed, err := make()
	return s.answer(r, sealed, err)
}

// unsealed records and words that a program is not run because none is sealed.
func (s *seals) unsealed(path string, pid int) supervise.Refusal {
	at := s.plan.Artifacts.Run.From
	rule := fmt.Sprintf("[artifact] run = \"deny\" (%s)", at)
	s.record(supervise.Request{Path: path, PID: pid}, seal.Sealed{}, "refused", rule)
	return supervise.Refusal{Key: rule, Message: fmt.Sprintf("%q is not run: %s", path, rule), Short: fmt.Sprintf("%q is not run (%s)", path, at)}
}

// answer records what became of a file, and words a refusal for who asked.
func (s *seals) answer(r supervise.Request, sealed seal.Sealed, err error) (string, error) {
	var refused *seal.Refusal
	switch {
	case err == nil && sealed.Cached:
		s.record(r, sealed, "cached", "")
		return s.inside(sealed.Path), nil
	case err == nil:
		s.record(r, sealed, "sealed", "")
		return s.inside(sealed.Path), nil
	case !errors.As(err, &refused):
		s.record(r, sealed, "failed", err.Error())
		// Not the errno alone: who reads "no space left" looks at the wrong disk.
		return "", fmt.Errorf("%q could not be sealed: %v (copies are kept in %q)", r.Path, plan.Cause(err), s.plan.State)
	}
	s.record(r, sealed, "refused", refused.Error())
	switch refused.Reason {
	case seal.Busy, seal.Changing:
		return "", unix.ETXTBSY // what the kernel says, and what callers retry on
	case seal.NotRegular, seal.Unreadable:
		return "", unix.EACCES
	}
	if refused.Reason == seal.Denied && refused.Err != nil {
		return "", supervise.Refusal{Key: r.Path, Message: fmt.Sprintf("%q: %v", r.Path, refused.Err), Short: fmt.Sprintf("%q is not run", r.Path)}
	}
	return "", refusedFile(r, refused.Error())
}

func refusedFile(r supervise.Request, why string) error {
	return supervise.Refusal{Key: r.Path, Message: fmt.Sprintf("%q is not run: %s", r.Path, why), Short: fmt.Sprintf("%q is not run", r.Path)}
}

// record writes what was decided on a file.
func (s *seals) record(r supervise.Request, sealed seal.Sealed, decision, rule string) {
	parent, _ := os.Readlink("/proc/" + strconv.Itoa(r.PID) + "/exe")
	s.opening.Lock()
	err := s.begin()
	s.opening.Unlock()
	if err != nil {
		s.unwritten(err)
		return
	}
	s.write(seal.Entry{
		Time: time.Now(), PID: r.PID, Parent: parent, Path: r.Path, Digest: sealed.Digest, Size: sealed.Size, Decision: decision, Rule: rule,
	})
}

// write adds a line to the journal. One that can't be written is no reason to
// refuse: the journal says itself when it is full or has lost some, and the user is
// told when that begins.
func (s *seals) write(e seal.Entry) {
	err := s.run.Journal().Write(e)
	if err != nil && !errors.Is(err, seal.ErrFull) {
		s.unwritten(err)
	}
}

func (s *seals) unwritten(err error) {
	s.unrecorded.Do(func() {
		fmt.Fprintf(os.Stderr, "jail: warning: what is built and run is not recorded: the journal in %q: %v\n", s.plan.State, plan.Cause(err))
	})
}
