// Most calls that a jail waits for are of the system's programs and libraries,
// and end in "continue". Here they do without a Go scheduler in between, whose
// cost is several times that of all else. See doc.go: nothing rests on it.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "attend.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#define JAIL_PIDFD_THREAD O_EXCL // Linux 6.9
#define JAIL_SOCKFS 0x534f434bu  // statfs(2)

// place is FNV-1a's.
static unsigned place(const char *path, unsigned n)
{
	uint32_t h = 2166136261u;

	for (unsigned i = 0; i < n; i++)
		h = (h ^ (unsigned char)path[i]) * 16777619u;
	return (h ^ h >> 16) & (JAIL_NAMES - 1);
}

void jail_remember(struct jail_names *set, const char *path, unsigned n)
{
	if (n == 0 || n > JAIL_NAME)
		return;
	unsigned i = place(path, n);
	set->slot[i].len = n;
	memcpy(set->slot[i].text, path, n);
}

static int known(const struct jail_names *set, const char *path, unsigned n)
{
	unsigned i = place(path, n);

	return set->slot[i].len == n && !memcmp(set->slot[i].text, path, n);
}

int jail_knows(const struct jail_names *set, pid_t task, uint64_t at)
{
	char path[JAIL_NAME + 1];
	size_t most = 4096 - at % 4096; // the next page may not be there
	struct iovec here = { path, most < sizeof path ? most : sizeof path };
	struct iovec there = { (void *)(uintptr_t)at, here.iov_len };
	ssize_t got = process_vm_readv(task, &here, 1, &there, 1, 0);
	const char *end = got > 0 ? memchr(path, 0, got) : 0;

	return end && end > path && known(set, path, end - path);
}

// executable tells whether one of a task's descriptors is open on a mount that
// is not noexec.
static int executable(pid_t task, int fd)
{
	struct statfs fs;
	int pid = syscall(SYS_pidfd_open, task, JAIL_PIDFD_THREAD);
	if (pid < 0)
		return 0;
	int copy = syscall(SYS_pidfd_getfd, pid, fd, 0);
	int got = copy >= 0 && !fstatfs(copy, &fs);
	int yes = got && !(fs.f_flags & ST_NOEXEC);

	// Nobody maps a socket. One that lingers would keep us at its close.
	if (got && (unsigned)fs.f_type == JAIL_SOCKFS) {
		struct linger none = { 0, 0 };
		setsockopt(copy, SOL_SOCKET, SO_LINGER, &none, sizeof none);
	}
	if (copy >= 0)
		close(copy);
	close(pid);
	return yes;
}

// certain tells whether the kernel's own answer is right: on what is executed by a
// path that is remembered, and on mapping a file from a mount that is not noexec.
static int certain(const struct jail_attend *a, const struct seccomp_notif *n)
{
	if (!a->shortcuts)
		return 0;
	switch (n->data.nr) {
	case SYS_execve:
#ifdef SYS_access
	case SYS_access:
#endif
		return jail_knows(&a->names, n->pid, n->data.args[0]);
	case SYS_faccessat:
	case SYS_faccessat2: // an absolute path, so the directory does not matter
		return jail_knows(&a->names, n->pid, n->data.args[1]);
	case SYS_mmap:
		return executable(n->pid, n->data.args[4]);
	}
	return 0;
}

// gone tells whether all have ended. It can wait until that is so or there is
// something to be received.
static int gone(int listener, int wait)
{
	struct pollfd p = { listener, POLLIN, 0 };

	return poll(&p, 1, wait ? -1 : 0) > 0 && !(p.revents & POLLIN);
}

int jail_attend(const struct jail_attend *a, struct seccomp_notif *n)
{
	for (;;) {
		if (a->poll && gone(a->listener, 1))
			return ENOENT;
		memset(n, 0, sizeof *n); // the kernel wants it
		if (ioctl(a->listener, SECCOMP_IOCTL_NOTIF_RECV, n)) {
			if (errno == ENOENT && gone(a->listener, 0))
				return ENOENT;
			if (errno != ENOENT && errno != EINTR) // ENOENT: it was killed before it was taken
				return errno;
			continue;
		}
		if (!certain(a, n))
			return 0;
		struct seccomp_notif_resp pass = { .id = n->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
		ioctl(a->listener, SECCOMP_IOCTL_NOTIF_SEND, &pass); // who was killed needs none
	}
}
