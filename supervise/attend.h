// What attend.c shares with Go.

#ifndef JAIL_ATTEND_H
#define JAIL_ATTEND_H

#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/types.h>

// A path longer than this is not remembered. With its length a slot takes 128 bytes.
#define JAIL_NAME 127
#define JAIL_NAMES 512 // a power of two

// jail_names is a set of paths. One that finds its place taken is put there instead.
struct jail_names {
	struct {
		unsigned char len; // 0: empty
		char text[JAIL_NAME];
	} slot[JAIL_NAMES];
};

struct jail_attend {
	int listener;
	int shortcuts; // 0: nothing is certain
	int poll;      // receiving does not notice that all have ended (before Linux 6.11)
	struct jail_names names; // of what is left to the kernel when it is executed
};

// jail_remember adds a path of n bytes.
void jail_remember(struct jail_names *set, const char *path, unsigned n);

// jail_knows tells whether what is at the address in a task is a path of the set.
int jail_knows(const struct jail_names *set, pid_t task, uint64_t at);

// jail_attend leaves calls to the kernel for as long as it is certain of them. It
// returns 0 with one in *n that it is not certain of, or an errno: ENOENT if
// nobody is left who could call.
int jail_attend(const struct jail_attend *a, struct seccomp_notif *n);

#endif
