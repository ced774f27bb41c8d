// The last steps before execve(2), in the one order in which they work:
//
//	no_new_privs    or an ordinary user may load neither Landlock nor a filter
//	capabilities    gone; with CAP_SYS_ADMIN the mounts could be undone
//	Landlock        before the filter, which need not allow it then
//	close-on-exec   on all descriptors above 2: no layer takes their rights back
//	seccomp         last, so that the filter need not allow what comes before
//	limits          after it, since this process itself may be over them
//
// It is C because a forked child of a Go process can't run Go: the only other
// way is to start the binary once more, which costs 3 ms.

#define _GNU_SOURCE
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Debian 11's headers are older than these.
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
#ifndef SECCOMP_FILTER_FLAG_NEW_LISTENER
#define SECCOMP_FILTER_FLAG_NEW_LISTENER (1UL << 3)
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static int no_new_privs(void) {
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

// drop_capabilities empties every set of this thread. The bounding set can be
// lowered only with CAP_SETPCAP; without it there is nothing that no_new_privs
// would let through it.
static int drop_capabilities(void) {
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return -1;
	for (int c = 0; c <= CAP_LAST_CAP; c++)
		if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0))
			break;
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	return (int)syscall(SYS_capset, &header, none);
}

static int close_descriptors(void) {
	return (int)syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
}

// send_descriptor passes a descriptor over a unix socket (unix(7), SCM_RIGHTS).
static int send_descriptor(int to, int fd) {
	char byte = 0;
	struct iovec data = {.iov_base = &byte, .iov_len = 1};
	union {
		char space[CMSG_SPACE(sizeof fd)];
		struct cmsghdr align;
	} control = {{0}};
	struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	return sendmsg(to, &m, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

// files is the soft limit of open files that this process was started with. Go
// raises it when it starts, and only its own ways of executing put it back;
// programs that use select(2) or close all that could be open need it.
static struct rlimit files;

// ignored are the signals that were ignored then: Go takes all but SIGHUP and
// SIGINT for itself, and execve(2) would give them their default.
static unsigned long long ignored;

__attribute__((constructor)) static void remember(void) {
	getrlimit(RLIMIT_NOFILE, &files);
	for (int n = 1; n < NSIG; n++) {
		struct sigaction a;
		if (!sigaction(n, NULL, &a) && a.sa_handler == SIG_IGN)
			ignored |= 1ULL << (n - 1);
	}
}

unsigned long long jail_ignored(void) {
	return ignored;
}

static void ignore(unsigned long long signals) {
	for (int n = 1; n < NSIG; n++)
		if (signals >> (n - 1) & 1)
			signal(n, SIG_IGN);
}

// set_limits lowers limits; one that is lower already stays.
static int set_limits(const struct jail_steps *s) {
	if (setrlimit(RLIMIT_NOFILE, &files))
		return -1;
	for (size_t i = 0; i < s->nlimits; i++) {
		struct rlimit have;
		rlim_t want = s->limits[i].value;
		if (getrlimit(s->limits[i].resource, &have))
			return -1;
		if (have.rlim_cur > want)
			have.rlim_cur = want;
		if (have.rlim_max > want)
			have.rlim_max = want;
		if (setrlimit(s->limits[i].resource, &have))
			return -1;
	}
	return 0;
}

// load puts the filter on, and hands over its listener if somebody is to have it.
// While a call waits for an answer only a fatal signal ends the wait; others come
// after the answer, so that no call is EINTR for being watched (Linux 5.19).
static enum jail_step load(const struct jail_steps *s) {
	if (s->listener < 0)
		return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0UL, &s->filter) ? JAIL_SECCOMP : 0;
	unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &s->filter);
	if (fd < 0 && errno == EINVAL)
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &s->filter);
	if (fd < 0)
		return JAIL_SECCOMP;
	return send_descriptor(s->listener, (int)fd) || close((int)fd) ? JAIL_LISTENER : 0;
}

static struct jail_failure failed(enum jail_step step) {
	return (struct jail_failure){.step = step, .error = errno};
}

struct jail_failure jail_exec(const struct jail_steps *s) {
	if (no_new_privs())
		return failed(JAIL_NO_NEW_PRIVS);
	if (drop_capabilities())
		return failed(JAIL_CAPABILITIES);
	if (s->ruleset >= 0 && syscall(SYS_landlock_restrict_self, s->ruleset, 0))
		return failed(JAIL_LANDLOCK);
	if (close_descriptors())
		return failed(JAIL_CLOSE);
	enum jail_step step = load(s);
	if (step)
		return failed(step);
	if (set_limits(s))
		return failed(JAIL_LIMITS);
	ignore(s->ignored);
	execve(s->path, s->argv, s->envp);
	return failed(JAIL_EXEC);
}

// default_signals undoes Go's handlers: none of them could run in the child. What
// is ignored stays ignored, as across execve(2).
static void default_signals(void) {
	for (int n = 1; n < NSIG; n++) {
		struct sigaction a;
		if (sigaction(n, NULL, &a) || a.sa_handler == SIG_IGN || a.sa_handler == SIG_DFL)
			continue;
		a = (struct sigaction){.sa_handler = SIG_DFL};
		sigaction(n, &a, NULL);
	}
}

// in_child runs in the fork. Failure is written to a pipe that execve closes.
static void in_child(const struct jail_steps *s, int report, const sigset_t *mask) {
	default_signals();
	pthread_sigmask(SIG_SETMASK, mask, NULL);
	struct jail_failure f = jail_exec(s);
	ssize_t n = write(report, &f, sizeof f);
	_exit(n == sizeof f ? 126 : 125);
}

// await waits until the child has executed or failed. Ctrl-Z may stop it before: it
// is no command yet that a shell could continue, so it goes on.
static void await(pid_t pid, int report) {
	struct pollfd p = {.fd = report, .events = POLLIN};
	while (poll(&p, 1, 100) <= 0)
		kill(pid, SIGCONT);
}

pid_t jail_start(const struct jail_steps *s, struct jail_failure *f) {
	int pipe[2];
	sigset_t all, before;
	*f = (struct jail_failure){0};
	if (pipe2(pipe, O_CLOEXEC)) {
		*f = failed(JAIL_FORK);
		return -1;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	// Not fork(3), which takes locks of libc that another thread may hold.
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		in_child(s, pipe[1], &before);
	if (pid < 0)
		*f = failed(JAIL_FORK);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(pipe[1]);
	ssize_t n = 0;
	if (pid > 0)
		await(pid, pipe[0]);
	while (pid > 0 && (n = read(pipe[0], f, sizeof *f)) < 0 && errno == EINTR) {
	}
	close(pipe[0]);
	if (pid > 0 && n > 0) { // it says why it ends
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
		}
		return -1;
	}
	return pid;
}
