// The runner: what a redirected execve starts. See doc.go.
//
// It comes before the C library and the Go runtime, whose own start takes longer
// than everything here: so there is no libc, no errno and no thread-local storage
// yet, and nothing is allocated. What fails ends the process: the file is never run
// with less around it than was ordered.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runner.h"

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

// jail_call makes a system call: start_*.S. Failure is an errno below zero.
long jail_call(long number, ...);

static int failed(long result) { return result < 0 && result > -4096; }

// length is strlen. A compiler that saw through it would call that.
static size_t length(const char *s)
{
	size_t n = 0;

	while (s[n]) {
		__asm__ volatile("");
		n++;
	}
	return n;
}

static void say(const char *text, size_t n)
{
	while (n > 0) {
		long done = jail_call(SYS_write, 2L, text, n);
		if (done <= 0)
			return;
		text += done;
		n -= done;
	}
}

static void leave(long status)
{
	for (;;)
		jail_call(SYS_exit_group, status);
}

// fail says what went wrong, with the errno's number.
static void fail(const char *what, long result)
{
	static const char start[] = "jail: error: the sealed program was not started: ", number[] = ": errno ";
	char digits[6];
	size_t at = sizeof digits;
	unsigned e = -result;

	digits[--at] = '\n';
	do {
		digits[--at] = '0' + e % 10;
		e /= 10;
	} while (e > 0 && at > 0);
	say(start, sizeof start - 1);
	say(what, length(what));
	say(number, sizeof number - 1);
	say(digits + at, sizeof digits - at);
	leave(126);
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
static const char *after(const char *s) { return s + length(s) + 1; }

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
	long at = jail_call(SYS_mmap, 0L, (n + argc + 1) * sizeof(char *), (long)(PROT_READ | PROT_WRITE), (long)(MAP_PRIVATE | MAP_ANONYMOUS), -1L, 0L);
	if (failed(at))
		fail("arguments", at);
	char **out = (char **)at;
	for (uint32_t i = 0; i < n; i++, words = after(words))
		out[i] = (char *)words;
	for (int i = 1; i < argc; i++)
		out[n++] = argv[i];
	return out;
}

static void confine(const struct runner_order *o, const struct sock_filter *filter)
{
	long e = jail_call(SYS_prctl, (long)PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L);

	if (failed(e))
		fail("no_new_privs", e);
	if (o->ruleset >= 0 && failed(e = jail_call(SYS_landlock_restrict_self, (long)o->ruleset, 0L)))
		fail("landlock_restrict_self", e);
	if (o->filter_len > 0) {
		struct sock_fprog prog = { o->filter_len, (struct sock_filter *)filter };
		if (failed(e = jail_call(SYS_seccomp, (long)SECCOMP_SET_MODE_FILTER, 0L, &prog)))
			fail("seccomp filter", e);
	}
}

static void limit(const struct runner_limit *l, uint32_t n)
{
	for (; n > 0; n--, l++) {
		struct { uint64_t cur, max; } have, want; // struct rlimit64
		long e = jail_call(SYS_prlimit64, 0L, (long)l->resource, 0L, &have);

		if (failed(e))
			fail("getrlimit", e);
		want.max = l->value < have.max ? l->value : have.max;
		want.cur = want.max < have.cur ? want.max : have.cur;
		if (failed(e = jail_call(SYS_prlimit64, 0L, (long)l->resource, &want, 0L)))
			fail("setrlimit", e);
	}
}

// run carries out the order behind fd. Its makers are jail's own supervisor, and
// nobody can change it any more.
static void run(long fd, int argc, char **argv, char **envp)
{
	long size = jail_call(SYS_lseek, fd, 0L, (long)SEEK_END);
	if (failed(size) || (size_t)size < sizeof(struct runner_order))
		fail("order", size);
	long at = jail_call(SYS_mmap, 0L, size, (long)PROT_READ, (long)MAP_PRIVATE, fd, 0L);
	if (failed(at))
		fail("order", at);
	const struct runner_order *o = (const void *)at;
	const struct runner_limit *limits = (const void *)(o + 1);
	const struct sock_filter *filter = (const void *)(limits + o->limits);
	const char *path = (const char *)(filter + o->filter_len);
	const char *words = after(path), *patterns = words;

	if (o->say) {
		say(path, length(path));
		leave(o->say);
	}
	for (uint32_t i = 0; i < o->words; i++)
		patterns = after(patterns);
	drop(envp, patterns, o->patterns);
	argv = arguments(argc, argv, words, o->words);
	limit(limits, o->limits);
	confine(o, filter);
	fail("execve", jail_call(SYS_execve, path, argv, envp));
}

// descriptor is N of /dev/fd/N, or -1.
static long descriptor(const char *name)
{
	long n = 0;

	for (const char *want = "/dev/fd/"; *want; want++)
		if (*name++ != *want)
			return -1;
	if (!*name)
		return -1;
	for (; *name; name++) {
		if (*name < '0' || *name > '9' || n > INT32_MAX / 10)
			return -1;
		n = n * 10 + *name - '0';
	}
	return n;
}

// name is what the kernel calls the program, beside the environment.
static const char *name(char **envp)
{
	while (*envp)
		envp++;
	for (const unsigned long *aux = (void *)(envp + 1); aux[0] != AT_NULL; aux += 2)
		if (aux[0] == AT_EXECFN)
			return (const char *)aux[1];
	return "";
}

// jail_runner is called with the stack that the kernel made. The kernel calls a
// program that was started through a descriptor /dev/fd/N. Only then the
// supervisor is asked. It answers EINVAL to those whom it did not send; without
// one the kernel finds fault with the flag, or with the null pointer first (EFAULT,
// Linux 6.18). Then this is jail itself.
void jail_runner(long *stack)
{
	int argc = stack[0];
	char **argv = (char **)(stack + 1), **envp = argv + argc + 1;
	long fd = descriptor(name(envp));
	if (fd < 0)
		return;
	// What is given is for nobody else: who shares the caller's domain could take
	// the ruleset, and add to what all artifacts to come may do. The kernel has closed
	// a file that can't be read; this is for file systems without modes. execve undoes
	// it.
	long e = jail_call(SYS_prctl, (long)PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
	if (failed(e))
		fail("dumpable", e);
	// It knows the order by that number, in the place of the arguments.
	long order = jail_call(SYS_execveat, -1L, 0L, fd, 0L, (long)JAIL_ASK);
	if (!failed(order))
		run(order, argc, argv, envp);
	else if (order != -EINVAL && order != -EFAULT)
		fail("no order", order);
	else
		jail_call(SYS_prctl, (long)PR_SET_DUMPABLE, 1L, 0L, 0L, 0L);
}
