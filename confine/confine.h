// What confine.c needs to know, and what it answers. Go fills it in; after that
// no memory is allocated and no lock taken, so that it may run in a child that
// was forked from a process with threads.

#ifndef JAIL_CONFINE_H
#define JAIL_CONFINE_H

#include <linux/filter.h>
#include <stddef.h>
#include <sys/types.h>

struct jail_limit {
	int resource; // RLIMIT_*
	unsigned long long value;
};

struct jail_steps {
	int ruleset;  // a Landlock ruleset, or -1: no layer is added
	int listener; // a unix socket to send the filter's listener on, or -1
	struct sock_fprog filter;
	unsigned long long ignored; // signals, bit n-1 for n
	struct jail_limit *limits;
	size_t nlimits;
	const char *path;
	char **argv, **envp;
};

// The steps, in their order. The words for them are in confine.go.
enum jail_step {
	JAIL_NO_NEW_PRIVS = 1,
	JAIL_CAPABILITIES,
	JAIL_LANDLOCK,
	JAIL_CLOSE,
	JAIL_SECCOMP,
	JAIL_LISTENER,
	JAIL_LIMITS,
	JAIL_EXEC,
	JAIL_FORK,
};

// failure is the step that failed and its errno; nothing after it was done.
struct jail_failure {
	int step;
	int error;
};

// jail_ignored are the signals that this process was started with ignored.
unsigned long long jail_ignored(void);

// jail_exec confines the calling thread and executes. It returns only on failure.
struct jail_failure jail_exec(const struct jail_steps *s);

// jail_start does the same in a child and returns its pid, or the failure: the
// child has ended then, and was waited for.
pid_t jail_start(const struct jail_steps *s, struct jail_failure *f);

#endif
