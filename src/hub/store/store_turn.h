/*
 * store_turn.h - the turns of the jobs of a lane: deficit round robin over time, by weight.
 *
 * A turn costs the time that the lane's thread has spent in it: receiving, adding, optimizing, sending. So jobs with
 * the same optimizer move bytes in proportion to their weights, and a job whose optimizer takes long for a byte pays
 * for it by moving fewer, and not the other jobs. A turn cannot be broken off, so its cost may exceed what the job has
 * left: the debt is paid with the rounds of turns that follow, also by a job that has nothing to do meanwhile. Pure:
 * the caller has the clock; one thread at a time.
 */
#ifndef HUB_STORE_STORE_TURN_H
#define HUB_STORE_STORE_TURN_H

#include <stdbool.h>
#include <stdint.h>

#define STORE_TURN_QUANTUM 200000 /* nanoseconds per round and unit of weight: the time of some 64 KiB */
#define STORE_TURN_MOST 100000000u /* of a cost: in a longer turn the thread was stopped, and the job did not work */

/* Zeroed: of a new job. */
struct store_turn {
	int64_t left; /* nanoseconds that the job may still use in this round; negative: a debt */
};

/* False: a job with work has used its time, and waits for the next round. */
bool store_turn_may(const struct store_turn *turn);
void store_turn_end(struct store_turn *turn, uint64_t took_ns);
/* A round is over when no job has had a turn since the last look at all: for each job, whether it has work or not.
 * weight: at least 1. */
void store_turn_next_round(struct store_turn *turn, uint32_t weight);

#endif
