/*
 * explore.h - every run of a few workers, their switches and an owner, with a network that may do anything but forge.
 *
 * The network: a packet that was once sent may arrive never, once or any number of times, in any order, for ever.
 * Workers: each may have sent its original, its resend and its bypassing resend of any number at any time, so every
 * time-out and every window is covered; the packets are made by the product's sender. Switches: any slot may be
 * forgotten at any moment, by a restart or for another job. Words are not numbers but a count per worker, so that a
 * worker that is in a sum twice, or not at all, is seen.
 *
 * A state is: slots, what the owner holds of each number, and the packets that may still arrive at the second level and
 * at the owner.
 */
#ifndef TESTS_SWITCH_EXPLORE_H
#define TESTS_SWITCH_EXPLORE_H

#include "rules.h"

#define EXPLORE_WORKERS 8u
#define EXPLORE_SLOTS 8u
#define EXPLORE_NUMBERS 2u

struct explore_case {
	const char *name;
	uint32_t workers;
	uint16_t group_of[EXPLORE_WORKERS];
	uint32_t groups; /* 1: one level; else two */
	uint32_t numbers, slots; /* slots of each switch; a number has the slot of its remainder */
};

enum explore_verdict {
	EXPLORE_SAFE,
	EXPLORE_WRONG_SUM,   /* a packet leaves, or a number completes, with other words than its bitmap says */
	EXPLORE_NO_PROGRESS, /* from some state resends without loss do not complete */
	EXPLORE_LEAK,        /* a slot refuses another job's packet, however old it is */
	EXPLORE_TOO_MANY,    /* states */
};

struct explore_result {
	enum explore_verdict verdict;
	char text[160];       /* of what is wrong */
	uint64_t states;
	uint32_t worst_rounds; /* of resends until all is complete */
	uint64_t late, ends;   /* of so many ends (states and orders), so many need more than one round */
	uint32_t steps;        /* of the shortest run to a wrong sum */
};

/* All of it, from the start. max_states bounds memory: about 50 bytes each. */
struct explore_result explore_all(const struct explore_case *c, const struct rules *rules, uint64_t max_states);

/*
 * For larger cases: every slot state that can be with every packet that can be, every state of the owner with every
 * packet. That includes all real runs and more, so EXPLORE_SAFE is a proof; states counts slots, packets and owner
 * states.
 */
struct explore_result explore_closure(const struct explore_case *c, const struct rules *rules);

/* Prints a result in a line. */
void explore_print(const struct explore_case *c, const struct rules *rules, const struct explore_result *result);
const char *explore_verdict_name(enum explore_verdict verdict);

#endif
