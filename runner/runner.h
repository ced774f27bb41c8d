#include <stdint.h>

// JAIL_ASK is a flag of execveat that no kernel knows.
#define JAIL_ASK 0x6a61696c

// The order as it lies in memory: this, the limits, the filter, then strings
// that end in NUL: the path, the words, the patterns. order.go writes it.
struct runner_order {
	uint32_t say; // not 0: print the path and exit with this status
	int32_t ruleset; // descriptor, or -1
	uint32_t limits, filter_len, words, patterns;
};

struct runner_limit {
	uint64_t resource, value;
};
