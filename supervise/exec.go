package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"jail/runner"
)

// execute decides on execve and execveat. What is on a mount that allows
// execution is the kernel's business, and so is all that can't be looked up:
// it finds the same error.
func (s *server) execute(c call) {
	if c.flags == runner.Ask && c.dir == -1 && c.at == 0 {
		s.answerRunner(c)
		return
	}
	if c.flags&^(unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW) != 0 || s.ordered(c) {
		s.pass(c.id)
		return
	}
	f, err := s.find(&c)
	if err != nil || !f.regular() {
		s.pass(c.id)
		if err == nil {
			f.close()
		}
		return
	}
	path, err := f.path()
	if err != nil {
		path = c.path
	}
	switch {
	case !s.listener.Valid(c.id):
		f.close()
	case s.guided(c, path), s.denied(c, path):
		f.close()
	case !f.noexec():
		f.close()
		s.executable(c, &f.stat, path)
	case s.upgradable(f, path):
		s.work.Go(func() { s.upgrade(c, f, path) })
	case s.unsealed(c, f, path):
		f.close()
	default:
		f.close()
		s.pass(c.id)
	}
}

// upgradable tells whether the jail may write a file that is on a noexec mount.
func (s *server) upgradable(f *file, path string) bool {
	return s.Program != nil && s.written(f, path)
}

// written tells whether the kernel does not execute a file because the jail may
// write it.
func (s *server) written(f *file, path string) bool {
	return f.noexec() && (f.mount&unix.ST_RDONLY == 0 || s.Writable != nil && s.Writable(path))
}

// unsealed says why what the jail has written is refused, where a rule keeps it from
// being sealed.
func (s *server) unsealed(c call, f *file, path string) bool {
	if s.Unsealed == nil || !s.written(f, path) || !f.executable() {
		return false
	}
	s.work.Go(func() { s.say(c, s.Unsealed(path, int(c.task))) })
	return true
}

// executable leaves a file to the kernel, but for a seal that is executed by its
// path, as a neighbour of a program that found it there, or by a program that
// asked for its own name: that means the file it was made of, as it is now.
func (s *server) executable(c call, st *unix.Stat_t, path string) {
	if !strings.HasPrefix(path, s.Runs+"/") {
		if s.always(c, path) {
			s.attendant.remember(c.path)
		}
		s.pass(c.id)
		return
	}
	// A redirected call of a thread beside the first: its process is not known (see ordered).
	startsRunner := c.path == "" && s.isRunnerFile(st)
	if s.Program == nil || startsRunner {
		s.pass(c.id)
		return
	}
	s.work.Go(func() { s.again(c, path) })
}

// again executes what a seal was made of, or, when that is gone, the seal.
func (s *server) again(c call, path string) {
	if original, ok := s.Original(path); ok {
		if f, err := s.open(original, 0); err == nil {
			if f.regular() && s.upgradable(f, original) {
				s.upgrade(c, f, original)
				return
			}
			f.close()
		}
	}
	switch layer, err := s.needsLayer(c.task); {
	case err != nil:
		s.failed(c, path, err)
	case layer:
		s.redirect(c, &order{Order: runner.Order{Path: path}, layer: true})
	default:
		s.pass(c.id)
	}
}

// denied says why a command is refused, if a rule of commands is the cause: the
// kernel, which refuses it whatever is said here, has only an errno.
func (s *server) denied(c call, path string) bool {
	if s.Denied == nil {
		return false
	}
	r, ok := s.Denied(path)
	if ok {
		s.work.Go(func() { s.say(c, r) })
	}
	return ok
}

func (s *server) isRunnerFile(st *unix.Stat_t) bool {
	r := s.runner.Load()
	return r != nil && *r == inode{st.Dev, st.Ino}
}

// runs tells whether a task is executing the runner.
func (s *server) runs(t task) bool {
	var st unix.Stat_t
	return unix.Stat(t.proc("exe"), &st) == nil && s.isRunnerFile(&st)
}

// guided stops a command that a rule advises against.
func (s *server) guided(c call, path string) bool {
	if len(s.Guides) == 0 {
		return false
	}
	for _, g := range s.Guides {
		if g.names(c, path) && g.matches(c.task.words(c.argv, len(g.Words))) {
			s.work.Go(func() { s.say(c, g.Refusal) })
			return true
		}
	}
	return false
}

// names tells whether the guide is for a program of this name.
func (g Guide) names(c call, path string) bool {
	return g.Words[0] == filepath.Base(path) || g.Words[0] == filepath.Base(c.path)
}

// matches compares what follows the name.
func (g Guide) matches(argv []string) bool {
	if len(argv) < len(g.Words) {
		return false
	}
	for i := 1; i < len(g.Words); i++ {
		if argv[i] != g.Words[i] {
			return false
		}
	}
	return true
}

// upgrade executes what the jail has written.
func (s *server) upgrade(c call, f *file, path string) {
	defer f.close()
	if !f.executable() {
		s.refuse(c.id, unix.EACCES)
		return
	}
	o, err := s.orderFor(c, f, path)
	if err != nil {
		s.failed(c, path, err)
		return
	}
	s.redirect(c, o)
}

// failed answers with why nothing is executed.
func (s *server) failed(c call, path string, err error) {
	var r Refusal
	var e unix.Errno
	switch {
	case errors.As(err, &r):
		s.say(c, r)
	case errors.As(err, &e):
		s.refuse(c.id, e)
	default:
		s.say(c, Refusal{Key: path, Message: "error: " + err.Error()})
	}
}

func (s *server) orderFor(c call, f *file, path string) (*order, error) {
	content, err := f.reopen()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	head := make([]byte, headSize)
	n, err := content.ReadAt(head, 0)
	if n == 0 && err != nil {
		return nil, unix.ENOEXEC // empty
	}
	switch head = head[:n]; {
	case isScript(head):
		return s.script(c, head)
	case isProgram(head):
		return s.program(c, content, path)
	}
	return nil, unix.ENOEXEC
}

func (s *server) program(c call, f *os.File, path string) (*order, error) {
	layer, err := s.needsLayer(c.task)
	if err != nil {
		return nil, err
	}
	sealed, err := s.Program(Request{File: f, Path: path, PID: int(c.task)})
	if err != nil {
		return nil, err
	}
	return &order{Order: runner.Order{Path: sealed}, layer: layer}, nil
}
