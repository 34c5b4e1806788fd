/*
 * impair.h - faults for tests: packets that are lost, repeated, changed in a bit, or held back, by a seed.
 *
 * Pure but for memory of packets that are held back. One thread.
 */
#ifndef SWITCH_SERVER_IMPAIR_H
#define SWITCH_SERVER_IMPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "switch/trains/trains.h"

/* Probabilities from 0 to 1. */
struct impair_config {
	uint64_t seed;
	double loss;     /* of packets that arrive, and of packets that leave, for each destination */
	double repeat;   /* arrives twice */
	double reorder;  /* is held back for up to 5 ms */
	double corrupt;  /* one bit of it is changed */
	uint64_t delay_ns; /* each packet is held back for so long */
};

struct impair_held;

struct impair {
	struct impair_config config;
	struct rng rng;
	struct impair_held **held; /* a heap, the earliest first */
	uint32_t held_count, held_room;
	uint64_t order; /* of packets that are due at the same time */
	uint64_t lost, repeated, reordered, corrupted; /* counters */
};

void switch_impair_init(struct impair *impair, const struct impair_config *config);
void switch_impair_fini(struct impair *impair);
bool switch_impair_is_active(const struct impair *impair);

typedef void switch_impair_pass_fn(void *context, const struct trains_datagram *datagram);
/* A packet has arrived: passed on at once, once or twice, or later, or never. */
void switch_impair_arrival(struct impair *impair, const struct trains_datagram *datagram, uint64_t now_ns,
                           switch_impair_pass_fn *pass, void *context);
/* Packets that were held back long enough. */
void switch_impair_release(struct impair *impair, uint64_t now_ns, switch_impair_pass_fn *pass, void *context);
/* When the next one is due; UINT64_MAX: none is held back. */
uint64_t switch_impair_due_ns(const struct impair *impair);
/* A packet leaves for one destination: is it lost? */
bool switch_impair_loses(struct impair *impair);

#endif
