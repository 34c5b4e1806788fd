/*
 * mechanism.h - the ways to bring gradients together and parameters out, by name: each is one or two planners.
 *
 * With servers an iteration has two collectives per parameter: a broadcast from its server, and a reduce to it. All
 * other mechanisms have one allreduce per layer. Nothing here says how long anything takes; that comes from running the plans.
 */
#ifndef SIM_WORKLOAD_MECHANISM_H
#define SIM_WORKLOAD_MECHANISM_H

#include <stdbool.h>
#include <stddef.h>

enum mechanism_pieces {
	MECHANISM_WHOLE,      /* a parameter is one message                                                  */
	MECHANISM_PER_WORKER, /* as many pieces as there are workers, each of which owns one                 */
	MECHANISM_AROUND,     /* the same, but no tiny ones: on a ring it makes no difference who owns which */
};

struct mechanism {
	const char *name;
	const char *summary;
	const char *spread; /* with servers: the planner of the broadcasts; NULL: without servers */
	const char *sum;    /* the planner of the reduces, or of the allreduces   */
	enum mechanism_pieces pieces;
	bool fuses;         /* gradients that are ready at one moment are one call   */
	bool rotates;       /* the next call's owner is the next worker              */
	bool uses_switch;   /* an extra node of the plan that stands on a switch     */
	bool uses_hubs;     /* an extra node per rack that stands on a host          */
};

/* In the order of mechanism_at(); ends with NULL. The first one is what speedups are relative to. */
const struct mechanism *mechanism_at(size_t index);
const struct mechanism *mechanism_find(const char *name);

#endif
