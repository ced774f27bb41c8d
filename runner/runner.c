// The runner: what a redirected execve starts. See doc.go.
//
// It runs as a constructor, before there is a Go runtime: starting that takes
// longer than everything here. It allocates nothing, and what fails ends the
// process: the file is never run with less around it than was ordered.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runner.h"

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

static void say(const char *text, size_t n)
{
	while (n > 0) {
		ssize_t done = write(2, text, n);
		if (done <= 0)
			return;
		text += done;
		n -= done;
	}
}

// fail says what went wrong, with the errno's number: its words are not worth
// the part of libc that has them.
static void fail(const char *what)
{
	char line[128] = "jail: error: the sealed program was not started: ";
	size_t n = strlen(line), k = strlen(what);
	int e = errno;

	memcpy(line + n, what, k); // all are short
	n += k;
	memcpy(line + n, ": errno ", 8);
	n += 8;
	if (e >= 100)
		line[n++] = '0' + e / 100 % 10;
	if (e >= 10)
		line[n++] = '0' + e / 10 % 10;
	line[n++] = '0' + e % 10;
	line[n++] = '\n';
	say(line, n);
	_exit(126);
}

// matches tells whether name, which ends at '=' or NUL, fits a pattern with *.
static int matches(const char *pattern, const char *name)
{
	for (; *pattern; pattern++, name++) {
		if (*pattern == '*') {
			do {
				if (matches(pattern + 1, name))
					return 1;
			} while (*name && *name++ != '=');
			return 0;
		}
		if (*pattern != *name || *name == '=')
			return 0;
	}
	return *name == '=' || *name == 0;
}

// after returns the string that follows s.
static const char *after(const char *s) { return s + strlen(s) + 1; }

// drop takes variables out of the environment, in place.
static void drop(char **env, const char *patterns, uint32_t n)
{
	char **keep = env;

	for (; *env; env++) {
		const char *p = patterns;
		uint32_t i = 0;

		while (i < n && !matches(p, *env)) {
			p = after(p);
			i++;
		}
		if (i == n)
			*keep++ = *env;
	}
	*keep = 0;
}

// arguments are the words of the order, then the caller's from the second on;
// without words they are the caller's.
static char **arguments(int argc, char **argv, const char *words, uint32_t n)
{
	if (n == 0)
		return argv;
	char **out = mmap(0, (n + argc + 1) * sizeof *out, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (out == MAP_FAILED)
		fail("arguments");
	for (uint32_t i = 0; i < n; i++, words = after(words))
		out[i] = (char *)words;
	for (int i = 1; i < argc; i++)
		out[n++] = argv[i];
	return out;
}

static void confine(const struct runner_order *o, const struct sock_filter *filter)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail("no_new_privs");
	if (o->ruleset >= 0 && syscall(SYS_landlock_restrict_self, o->ruleset, 0))
		fail("landlock_restrict_self");
	if (o->filter_len > 0) {
		struct sock_fprog prog = { o->filter_len, (struct sock_filter *)filter };
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
			fail("seccomp filter");
	}
}

static void limit(const struct runner_limit *l, uint32_t n)
{
	for (; n > 0; n--, l++) {
		struct rlimit have, want;

		if (getrlimit(l->resource, &have))
			fail("getrlimit");
		want.rlim_max = l->value < have.rlim_max ? l->value : have.rlim_max;
		want.rlim_cur = want.rlim_max < have.rlim_cur ? want.rlim_max : have.rlim_cur;
		if (setrlimit(l->resource, &want))
			fail("setrlimit");
	}
}

// run carries out the order behind fd. Its makers are jail's own supervisor, and
// nobody can change it any more.
static void run(int fd, int argc, char **argv, char **envp)
{
	struct stat st;

	if (fstat(fd, &st) || (size_t)st.st_size < sizeof(struct runner_order))
		fail("order");
	const struct runner_order *o = mmap(0, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (o == MAP_FAILED)
		fail("order");
	const struct runner_limit *limits = (const void *)(o + 1);
	const struct sock_filter *filter = (const void *)(limits + o->limits);
	const char *path = (const char *)(filter + o->filter_len);
	const char *words = after(path), *patterns = words;

	if (o->say) {
		say(path, strlen(path));
		_exit(o->say);
	}
	for (uint32_t i = 0; i < o->words; i++)
		patterns = after(patterns);
	drop(envp, patterns, o->patterns);
	argv = arguments(argc, argv, words, o->words);
	limit(limits, o->limits);
	confine(o, filter);
	execve(path, argv, envp);
	fail("execve");
}

// The kernel calls a program that was started through a descriptor /dev/fd/N.
// Only then the supervisor is asked. It answers EINVAL to those whom it did not
// send; without one the kernel finds fault with the flag, or with the null pointer
// first (EFAULT, Linux 6.18).
__attribute__((constructor)) static void jail_runner(int argc, char **argv, char **envp)
{
	const char *name = (const char *)getauxval(AT_EXECFN);

	if (!name || strncmp(name, "/dev/fd/", 8) || strchr(name + 8, '/'))
		return;
	// It knows the order by that number, in the place of the arguments.
	int fd = syscall(SYS_execveat, -1, 0, strtol(name + 8, 0, 10), 0, JAIL_ASK);
	if (fd >= 0)
		run(fd, argc, argv, envp);
	else if (errno != EINVAL && errno != EFAULT)
		fail("no order");
}
