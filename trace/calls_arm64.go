package trace

import "golang.org/x/sys/unix"

// older are the calls that not all architectures have.
func older() map[int]shape {
	return map[int]shape{
		unix.SYS_RENAMEAT: {op: "rename", want: always(Write), dir: 0, path: 1, dir2: 2, path2: 3, nolink: true},
		unix.SYS_FSTATAT:  {op: "stat", want: always(Look), dir: 0, path: 1, flags: 3},
	}
}
