package supervise

import "golang.org/x/sys/unix"

const sysAccess = unix.SYS_ACCESS
