/*
 * steps.h - finds the steps of a training in the calls that its ranks made, and makes traces of them.
 *
 * Nobody tells the library where a step begins. It is found in what repeats:
 *
 *     a  b  c     a  b  c     a  b  c     x     a  b  c        calls by size; a step is a b c
 *
 * - Calls with keys: the n-th call of each key belongs to step n, in whatever order they come.
 * - Others: the shortest sequence of sizes whose repetitions make up nearly all bytes, and before which, nearly every time, all calls
 *   before have ended: the next forward pass needs their results. It begins where the longest pauses are.
 *
 * Pure: times in, traces out.
 */
#ifndef SIM_WORKLOAD_STEPS_H
#define SIM_WORKLOAD_STEPS_H

#include "sim/workload/traces.h"

#define STEPS_CALLS_MAX (1u << 20) /* of a rank */
#define STEPS_LENGTH_MAX 4096u     /* calls of a step that are looked for */

/* A reduction that a rank took part in. */
struct steps_call {
	uint64_t number; /* of the group, the same on all ranks; keyed calls are counted apart */
	uint64_t key;    /* if it has one */
	uint64_t bytes;
	double from_s, to_s; /* handed over, and ended, by the clock of this rank */
	bool has_key;
};

struct steps_rank {
	uint32_t rank;
	struct steps_call *calls; /* any order; is sorted */
	uint32_t count, capacity;
};

struct steps_options {
	const char *name;   /* of the model */
	uint32_t length;    /* calls of a step; 0: find out */
	uint32_t skip;      /* steps at the beginning that are left out: they warm up */
	uint32_t most;      /* steps that are written */
	bool blocking;      /* the program waits for each call before it goes on: what calls took is not computing */
	bool without_order; /* do not say that the forward order is the reverse of the gradients' */
	double forward_s;   /* 0: the usual pause between the end of a step and the first call of the next */
};

struct steps_found {
	uint32_t length; /* calls of a step */
	uint32_t steps;  /* that there are, those left out included */
	uint32_t used;
	uint64_t bytes;  /* of a step */
	double overlap;  /* share of the calls of a step that were handed over while another of them was under way */
	bool by_key;
};

/*
 * ESP_EINVAL: there are no steps, or the ranks' calls do not fit together; err says what to do. ESP_ENOMEM. traces_fini() is allowed in any
 * case.
 */
ESP_CHECKED enum esp_status steps_find(struct steps_rank *ranks, uint32_t rank_count, const struct steps_options *options, struct traces *out,
                                       struct steps_found *found, struct error *err);

#endif
