/*
 * mechanism.h - the ways to sum gradients and to distribute parameters, by name: each is one or two planners.
 *
 * With servers an iteration has two collectives per parameter: a broadcast from its server, and a reduce to it.
 * All other mechanisms have one allreduce per layer. Times are not in this table; they come from running the
 * plans. Pure.
 */
#ifndef SIM_WORKLOAD_MECHANISM_H
#define SIM_WORKLOAD_MECHANISM_H

#include <stdbool.h>
#include <stddef.h>

enum mechanism_pieces {
	MECHANISM_WHOLE,      /* a parameter is one message                                                  */
	MECHANISM_PER_WORKER, /* a piece per worker, which owns it */
	MECHANISM_AROUND,     /* the same without tiny pieces: on a ring the owner makes no difference */
};

struct mechanism {
	const char *name;
	const char *summary;
	const char *spread; /* with servers: the planner of the broadcasts; NULL: without servers */
	const char *sum;    /* the planner of the reduces, or of the allreduces   */
	enum mechanism_pieces pieces;
	bool fuses;         /* gradients that are ready at the same time are one call */
	bool rotates;       /* the next call's owner is the next worker */
	bool uses_switch;   /* an extra node of the plan, at a switch */
	bool uses_hubs;     /* an extra node per rack, at a host */
};

/* In the order of workload_mechanism_at(); NULL behind the last. Speedups are relative to the first one. */
const struct mechanism *workload_mechanism_at(size_t index);
const struct mechanism *workload_mechanism_find(const char *name);

#endif
