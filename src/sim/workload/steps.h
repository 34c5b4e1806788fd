/*
 * steps.h - finds the training steps in the calls of all ranks, and makes traces of them.
 *
 * The library is not told where a step begins. It is found by repetition:
 *
 *     a  b  c     a  b  c     a  b  c     x     a  b  c        calls by size; a step is a b c
 *
 * - Calls with keys: the n-th call of each key belongs to step n, in any order.
 * - Others: the shortest sequence of sizes whose repetitions cover nearly all bytes, and before which nearly
 *   always all earlier calls have ended, as the next forward pass needs their results. It begins where the
 *   longest pauses are.
 *
 * Pure: times in, traces out.
 */
#ifndef SIM_WORKLOAD_STEPS_H
#define SIM_WORKLOAD_STEPS_H

#include "sim/workload/traces.h"

#define STEPS_CALLS_MAX (1u << 20) /* of a rank */
#define STEPS_LENGTH_MAX 4096u     /* most calls of a step */

/* A reduction that a rank took part in. */
struct steps_call {
	uint64_t number; /* in its communicator, the same on all ranks; keyed calls are counted apart */
	uint64_t key;    /* if it has one */
	uint64_t bytes;
	double from_s, to_s; /* start and end, by the clock of this rank */
	bool has_key;
};

struct steps_rank {
	uint32_t rank;
	struct steps_call *calls; /* in any order; workload_steps_find() sorts them */
	uint32_t count;
	size_t capacity;
};

struct steps_options {
	const char *name;   /* of the model */
	uint32_t length;    /* calls of a step; 0: find out */
	uint32_t skip;      /* steps left out at the beginning, for warm-up */
	uint32_t most;      /* most steps in the traces */
	bool blocking;      /* the program waits for each call: the time of calls is no computing time */
	bool without_order; /* do not assume that the forward order is the reverse of the gradients' */
	double forward_s;   /* 0: the usual pause between the end of a step and the first call of the next */
};

struct steps_found {
	uint32_t length; /* calls of a step */
	uint32_t steps;  /* all steps, those left out included */
	uint32_t used;
	uint64_t bytes;  /* of a step */
	double overlap;  /* share of a step's calls that were started while another one was under way */
	bool by_key;
};

/*
 * ESP_EINVAL: there are no steps, or the ranks' calls do not match; err has the remedy. ESP_ENOMEM.
 * workload_traces_fini() is allowed in any case.
 */
ESP_CHECKED enum esp_status workload_steps_find(struct steps_rank *ranks, uint32_t rank_count,
                                                const struct steps_options *options, struct traces *out,
                                                struct steps_found *found, struct error *err);

#endif
