/*
 * duet.h - a benchmark of two threads that talk to each other, in rounds that alternate: what such
 * programs have in common.
 */
#ifndef BENCH_DUET_H
#define BENCH_DUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

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

/*
 * One of the two ends, as a user of a transport that has one peer, number 0. First in the struct of whoever has more to tell.
 * Both send in turns, each answering the other (echoes), or one sends everything.
 */
struct duet_end {
	bool is_sender; /* or the first to send */
	bool echoes;
	uint32_t messages;
	uint32_t to_send, pulled, sent, received;
	bool ready;     /* the transport is to ask for more */
};
/* The first to send has something to send. */
void duet_begin(struct duet_end *end);
/* A message was received: it is answered, if there are answers. */
void duet_receive(struct duet_end *end);
/* All that is to come and to go has come and gone. */
bool duet_is_done(const struct duet_end *end);
/* What all users do alike; the transport's user is a struct duet_end. */
uint32_t duet_ready(void *user);
void duet_sent(void *user, uint32_t peer, uint16_t channel, void *cookie);
void duet_lost(void *user, uint32_t peer, enum esp_status why);
enum esp_status duet_failed(void *user);

/* Of a double in each of count structs, at that offset: the one that has `which` smaller ones. */
double duet_pick(const void *structs, size_t struct_bytes, unsigned count, size_t at, unsigned which);

/* Says what went wrong and ends the program. */
_Noreturn void duet_die(const char *what);

#endif
