package trace

import (
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Want is what a call wants to do with a file.
type Want uint8

// What calls want.
const (
	Read      Want = 1 << iota
	Write          // its content, its name, or what is in the directory
	Exec           // execve
	Load           // map it as code
	Connect        // to a socket
	Bind           // a name or port to a socket
	Attribute      // change mode, owner, times, extended attributes

	Look Want = 0 // at what it is: stat
)

// Use is one file or address in a call.
type Use struct {
	Op   string // the call, as people name it
	Want Want
	Path string // real, as the task sees it; "" if it is no file
	// Address is "unix:PATH", "unix:@NAME" or "tcp:PORT".
	Address string
}

// shape says where a call has its paths.
type shape struct {
	op     string
	want   func(a [6]uint64) Want
	dir    int // the argument with the directory's descriptor; -1: the working directory
	path   int // the argument with the path; -1: dir is the file itself
	dir2   int // of a second path, if path2 > 0
	path2  int
	flags  int  // the argument with AT_SYMLINK_NOFOLLOW, 0 if there is none
	nolink bool // the call is about the link itself
}

func always(w Want) func([6]uint64) Want { return func([6]uint64) Want { return w } }

// opening is what open(2) wants with flags in argument i.
func opening(i int) func([6]uint64) Want {
	return func(a [6]uint64) Want {
		switch flags := a[i]; {
		case flags&unix.O_PATH != 0:
			return Look
		case flags&(unix.O_CREAT|unix.O_TRUNC) != 0, flags&unix.O_ACCMODE == unix.O_WRONLY:
			return Write
		case flags&unix.O_ACCMODE == unix.O_RDWR:
			return Read | Write
		}
		return Read
	}
}

// asking is what access(2) asks about.
func asking(i int) func([6]uint64) Want {
	return func(a [6]uint64) (w Want) {
		for bit, want := range map[uint64]Want{unix.R_OK: Read, unix.W_OK: Write, unix.X_OK: Exec} {
			if a[i]&bit != 0 {
				w |= want
			}
		}
		return w
	}
}

// mapping is what mmap wants: only code is of interest.
func mapping(a [6]uint64) Want {
	if a[2]&unix.PROT_EXEC != 0 && a[3]&unix.MAP_ANONYMOUS == 0 {
		return Load
	}
	return Look
}

// common are the calls that all architectures have.
func common() map[int]shape {
	return map[int]shape{
		unix.SYS_OPENAT:            {op: "open", want: opening(2), dir: 0, path: 1},
		unix.SYS_MKDIRAT:           {op: "mkdir", want: always(Write), dir: 0, path: 1, nolink: true},
		unix.SYS_MKNODAT:           {op: "mknod", want: always(Write), dir: 0, path: 1, nolink: true},
		unix.SYS_UNLINKAT:          {op: "unlink", want: always(Write), dir: 0, path: 1, nolink: true},
		unix.SYS_RENAMEAT2:         {op: "rename", want: always(Write), dir: 0, path: 1, dir2: 2, path2: 3, nolink: true},
		unix.SYS_LINKAT:            {op: "link", want: always(Write), dir: 0, path: 1, dir2: 2, path2: 3, nolink: true},
		unix.SYS_SYMLINKAT:         {op: "symlink", want: always(Write), dir: 1, path: 2, nolink: true},
		unix.SYS_FCHMODAT:          {op: "chmod", want: always(Attribute), dir: 0, path: 1},
		unix.SYS_FCHMODAT2:         {op: "chmod", want: always(Attribute), dir: 0, path: 1, flags: 3},
		unix.SYS_FCHOWNAT:          {op: "chown", want: always(Attribute), dir: 0, path: 1, flags: 4},
		unix.SYS_UTIMENSAT:         {op: "utimes", want: always(Attribute), dir: 0, path: 1, flags: 3},
		unix.SYS_FCHMOD:            {op: "chmod", want: always(Attribute), dir: 0, path: -1},
		unix.SYS_FCHOWN:            {op: "chown", want: always(Attribute), dir: 0, path: -1},
		unix.SYS_FTRUNCATE:         {op: "truncate", want: always(Write), dir: 0, path: -1},
		unix.SYS_TRUNCATE:          {op: "truncate", want: always(Write), dir: -1, path: 0},
		unix.SYS_SETXATTR:          {op: "setxattr", want: always(Attribute), dir: -1, path: 0},
		unix.SYS_LSETXATTR:         {op: "setxattr", want: always(Attribute), dir: -1, path: 0, nolink: true},
		unix.SYS_FSETXATTR:         {op: "setxattr", want: always(Attribute), dir: 0, path: -1},
		unix.SYS_FACCESSAT:         {op: "access", want: asking(2), dir: 0, path: 1},
		unix.SYS_FACCESSAT2:        {op: "access", want: asking(2), dir: 0, path: 1, flags: 3},
		unix.SYS_STATX:             {op: "stat", want: always(Look), dir: 0, path: 1, flags: 2},
		unix.SYS_CHDIR:             {op: "chdir", want: always(Look), dir: -1, path: 0},
		unix.SYS_INOTIFY_ADD_WATCH: {op: "inotify", want: always(Look), dir: -1, path: 1},
		unix.SYS_EXECVE:            {op: "execve", want: always(Exec), dir: -1, path: 0},
		unix.SYS_EXECVEAT:          {op: "execve", want: always(Exec), dir: 0, path: 1, flags: 4},
		unix.SYS_MMAP:              {op: "mmap", want: mapping, dir: 4, path: -1},
	}
}

func (c Call) executes() bool { return c.Number == unix.SYS_EXECVE || c.Number == unix.SYS_EXECVEAT }

// program is the path of an execve that begins.
func (c Call) program() string {
	if !c.executes() {
		return ""
	}
	if u := pathsOf(c, common()[c.Number]); len(u) > 0 {
		return u[0].Path
	}
	return ""
}

// A Reader reads out of calls what they are about, while their task is stopped.
type Reader struct{ shapes map[int]shape }

// NewReader returns a reader for this architecture.
func NewReader() Reader {
	shapes := common()
	for number, s := range older() {
		shapes[number] = s
	}
	return Reader{shapes}
}

// Uses lists the files and addresses of a call. It is empty for calls that have
// none, and when the task's memory can't be read. A process's own descriptors under
// /proc and /dev are none of a rule's business.
func (r Reader) Uses(c Call) []Use {
	return slices.DeleteFunc(r.uses(c), func(u Use) bool { return own(u.Path) && u.Want != Look })
}

func (r Reader) uses(c Call) []Use {
	if c.Number == unix.SYS_CONNECT || c.Number == unix.SYS_BIND {
		return addressOf(c)
	}
	s, ok := r.shapes[c.Number]
	switch {
	case !ok:
		return nil
	case c.executes() && c.Path == "":
		return nil
	case c.executes():
		return []Use{{Op: s.op, Want: Exec, Path: c.Path}}
	}
	return pathsOf(c, s)
}

// pathsOf reads the one or two paths.
func pathsOf(c Call, s shape) []Use {
	want := s.want(c.Args)
	if s.op == "mmap" && want != Load {
		return nil
	}
	var out []Use
	add := func(dir, arg int) {
		name, ok := "", arg < 0
		if arg >= 0 {
			if name, ok = text(c.Task, c.Args[arg]); !ok && c.Args[arg] == 0 && dir >= 0 {
				ok = true // utimensat(fd, NULL)
			}
		}
		from := int32(unix.AT_FDCWD)
		if dir >= 0 {
			from = int32(c.Args[dir])
		}
		follow := !s.nolink && (s.flags == 0 || c.Args[s.flags]&unix.AT_SYMLINK_NOFOLLOW == 0)
		if real, found := resolve(c.Task, from, name, follow); ok && found {
			out = append(out, Use{Op: s.op, Want: want, Path: real})
		}
	}
	add(s.dir, s.path)
	if s.path2 > 0 {
		add(s.dir2, s.path2)
	}
	return out
}

// addressOf reads the address of connect and bind.
func addressOf(c Call) []Use {
	u := Use{Op: "connect", Want: Connect}
	if c.Number == unix.SYS_BIND {
		u = Use{Op: "bind", Want: Bind}
	}
	b := make([]byte, min(max(c.Args[2], 2), 128))
	if n, _ := ReadMemory(c.Task, b, c.Args[1]); n < 4 {
		return nil
	}
	switch family := int(b[0]) | int(b[1])<<8; {
	case family == unix.AF_INET, family == unix.AF_INET6:
		u.Address = "tcp:" + strconv.Itoa(int(b[2])<<8|int(b[3]))
	case family == unix.AF_UNIX && b[2] == 0:
		u.Address = "unix:@" + string(b[3:])
	case family == unix.AF_UNIX:
		name, _ := text(c.Task, c.Args[1]+2)
		path, ok := resolve(c.Task, unix.AT_FDCWD, name, true)
		if !ok {
			return nil
		}
		u.Address, u.Path = "unix:"+path, path
	default:
		return nil
	}
	return []Use{u}
}
