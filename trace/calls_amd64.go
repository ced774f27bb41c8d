package trace

import "golang.org/x/sys/unix"

// older are the calls that newer architectures do without.
func older() map[int]shape {
	return map[int]shape{
		unix.SYS_OPEN:       {op: "open", want: opening(1), dir: -1, path: 0},
		unix.SYS_CREAT:      {op: "open", want: always(Write), dir: -1, path: 0},
		unix.SYS_MKDIR:      {op: "mkdir", want: always(Write), dir: -1, path: 0, nolink: true},
		unix.SYS_RMDIR:      {op: "unlink", want: always(Write), dir: -1, path: 0, nolink: true},
		unix.SYS_MKNOD:      {op: "mknod", want: always(Write), dir: -1, path: 0, nolink: true},
		unix.SYS_UNLINK:     {op: "unlink", want: always(Write), dir: -1, path: 0, nolink: true},
		unix.SYS_RENAME:     {op: "rename", want: always(Write), dir: -1, path: 0, dir2: -1, path2: 1, nolink: true},
		unix.SYS_RENAMEAT:   {op: "rename", want: always(Write), dir: 0, path: 1, dir2: 2, path2: 3, nolink: true},
		unix.SYS_LINK:       {op: "link", want: always(Write), dir: -1, path: 0, dir2: -1, path2: 1, nolink: true},
		unix.SYS_SYMLINK:    {op: "symlink", want: always(Write), dir: -1, path: 1, nolink: true},
		unix.SYS_CHMOD:      {op: "chmod", want: always(Attribute), dir: -1, path: 0},
		unix.SYS_CHOWN:      {op: "chown", want: always(Attribute), dir: -1, path: 0},
		unix.SYS_LCHOWN:     {op: "chown", want: always(Attribute), dir: -1, path: 0, nolink: true},
		unix.SYS_UTIME:      {op: "utimes", want: always(Attribute), dir: -1, path: 0},
		unix.SYS_UTIMES:     {op: "utimes", want: always(Attribute), dir: -1, path: 0},
		unix.SYS_FUTIMESAT:  {op: "utimes", want: always(Attribute), dir: 0, path: 1},
		unix.SYS_ACCESS:     {op: "access", want: asking(1), dir: -1, path: 0},
		unix.SYS_STAT:       {op: "stat", want: always(Look), dir: -1, path: 0},
		unix.SYS_LSTAT:      {op: "stat", want: always(Look), dir: -1, path: 0, nolink: true},
		unix.SYS_NEWFSTATAT: {op: "stat", want: always(Look), dir: 0, path: 1, flags: 3},
	}
}
