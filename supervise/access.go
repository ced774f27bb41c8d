package supervise

import "golang.org/x/sys/unix"

// access answers whether a file could be executed as an execve of it would go.
// It is an answer, not a right.
func (s *server) access(c call) {
	if c.flags&^unix.AT_EACCESS != 0 {
		s.pass(c.id)
		return
	}
	f, err := s.find(&c)
	if err != nil {
		s.pass(c.id)
		return
	}
	defer f.close()
	path, err := f.path()
	switch {
	case err != nil || !f.regular() || !s.upgradable(f, path):
		s.pass(c.id)
	case !s.listener.Valid(c.id):
	case !f.executable():
		s.refuse(c.id, unix.EACCES)
	default:
		s.refuse(c.id, f.permits(c.mode&^unix.X_OK))
	}
}

// permits asks the kernel for what is no execution.
func (f *file) permits(mode uint32) unix.Errno {
	if err := unix.Access(f.self(), mode); err != nil {
		return err.(unix.Errno)
	}
	return 0
}
