/*
 * duet.h - a benchmark of two threads that talk to each other, in rounds that alternate: what such
 * programs have in common.
 */
#ifndef BENCH_DUET_H
#define BENCH_DUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DUET_ROUNDS 101u /* at most */

struct duet_options {
	unsigned rounds;
	bool json;
};

/* --rounds N, --json and --help. usage: all lines in front of those about them. Ends the program if that is all there is to do. */
struct duet_options duet_parse(int argc, char **argv, const char *usage);

/* What it took until both ends were done. */
struct duet_time {
	uint64_t ns;
	uint64_t cpu_ns; /* of both threads: what others do on the machine shows less in it */
};
struct duet_time duet_run(void *(*play)(void *end), void *one, void *other);

/* Of a double in each of count structs, at that offset: the one that has `which` smaller ones. */
double duet_pick(const void *structs, size_t struct_bytes, unsigned count, size_t at, unsigned which);

/* Says what went wrong and ends the program. */
_Noreturn void duet_die(const char *what);

#endif
