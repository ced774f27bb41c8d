package supervise

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"

	"jail/runner"
)

// maxNesting is how many interpreters in a row the kernel takes.
const maxNesting = 5

func isScript(head []byte) bool { return bytes.HasPrefix(head, []byte("#!")) }

// script starts the interpreter with the script's path, as the kernel does. The
// interpreter is executed under its own rules: it may be an artifact, or a
// script again.
func (s *server) script(c call, head []byte) (*order, error) {
	interpreter, argument, err := shebang(head)
	if err != nil {
		return nil, err
	}
	depth := s.nesting(c.task) + 1
	if depth > maxNesting {
		return nil, unix.ELOOP
	}
	// After the redirect an errno can't reach the caller any more: what is
	// plainly wrong is answered before.
	i, err := s.lookup(c.task, unix.AT_FDCWD, interpreter, 0)
	if err != nil {
		return nil, errnoOf(err)
	}
	defer i.close()
	name, _ := i.path()
	switch {
	case !i.regular() || !i.executable(), i.noexec() && !s.upgradable(i, name):
		return nil, unix.EACCES
	}
	words := []string{interpreter}
	if argument != "" {
		words = append(words, argument)
	}
	return &order{Order: runner.Order{Path: interpreter, Words: append(words, c.name())}, depth: depth}, nil
}

// errnoOf keeps what a caller of execve may see.
func errnoOf(err error) unix.Errno {
	switch err {
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG:
		return err.(unix.Errno)
	}
	return unix.EACCES
}

// name is what the kernel would tell the interpreter.
func (c call) name() string {
	switch {
	case c.path == "":
		return fmt.Sprintf("/dev/fd/%d", c.dir)
	case c.dir != unix.AT_FDCWD && c.path[0] != '/':
		return fmt.Sprintf("/dev/fd/%d/%s", c.dir, c.path)
	}
	return c.path
}

// shebang parses the first line as fs/binfmt_script.c does: one argument at
// most, blanks around it dropped. An interpreter's name that may have been cut
// off is an error.
func shebang(head []byte) (interpreter, argument string, err error) {
	line, _, whole := bytes.Cut(head[2:], []byte("\n"))
	if !whole {
		line, _, _ = bytes.Cut(line, []byte{0})
		cut := len(head) == headSize
		if name := bytes.TrimLeft(line, " \t"); cut && !bytes.ContainsAny(name, " \t") {
			return "", "", unix.ENOEXEC
		}
	}
	line = bytes.Trim(line, " \t")
	line, _, _ = bytes.Cut(line, []byte{0})
	name, rest := line, []byte(nil)
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		name, rest = line[:i], bytes.TrimLeft(line[i:], " \t")
	}
	if len(name) == 0 {
		return "", "", unix.ENOEXEC
	}
	return string(name), string(rest), nil
}
