package supervise

import (
	"os"

	"golang.org/x/sys/unix"

	"jail/seccomp"
)

// mmapCall is an mmap with PROT_EXEC of a file.
type mmapCall struct {
	id      uint64
	task    task
	fd      int
	private bool
}

// library decides on mapping a file as code. From a mount that allows execution
// the kernel maps it, from others it does not: the descriptor is exchanged for
// one on the seal before it is asked.
func (s *server) library(n *seccomp.Notification) {
	c := mmapCall{id: n.ID, task: task(n.PID), fd: int(int32(n.Args[4])), private: n.Args[3]&unix.MAP_TYPE == unix.MAP_PRIVATE}
	if s.Library == nil || !c.private {
		s.pass(c.id)
		return
	}
	f, err := c.task.openFD(c.fd)
	if err != nil {
		s.pass(c.id)
		return
	}
	path, err := f.path()
	if err != nil || !f.regular() || !s.upgradable(f, path) {
		f.close()
		s.pass(c.id)
		return
	}
	s.work.Go(func() {
		defer f.close()
		s.exchange(c, f, path)
		s.pass(c.id)
	})
}

// exchange seals a shared object and puts the seal in the descriptor's place.
// Whatever goes wrong, the kernel then refuses the mapping.
func (s *server) exchange(c mmapCall, f *file, path string) {
	flags, pos, err := c.task.descriptor(c.fd)
	if err != nil || flags&(unix.O_ACCMODE|unix.O_PATH) != unix.O_RDONLY {
		return
	}
	content, err := f.reopen()
	if err != nil {
		return
	}
	defer content.Close()
	head := make([]byte, headSize)
	if n, _ := content.ReadAt(head, 0); !isShared(head[:n]) || !s.listener.Valid(c.id) {
		return
	}
	sealed, err := s.Library(Request{File: content, Path: path, PID: int(c.task)})
	if err != nil {
		s.tellRefused(path, err)
		return
	}
	g, err := s.open(sealed, 0)
	if err != nil {
		return
	}
	defer g.close()
	swap, err := g.reopen()
	if err != nil {
		return
	}
	defer swap.Close()
	if _, err := swap.Seek(pos, 0); err == nil {
		_ = s.listener.GiveAs(c.id, int(swap.Fd()), c.fd, flags&unix.O_CLOEXEC != 0)
	}
}

func (s *server) tellRefused(path string, err error) {
	if r, ok := err.(Refusal); ok {
		s.tell("jail: " + s.words(r))
	} else if _, ok := err.(unix.Errno); !ok && !os.IsNotExist(err) {
		s.tell("jail: " + path + ": " + err.Error())
	}
}
