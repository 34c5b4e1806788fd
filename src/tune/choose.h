/*
 * choose.h - the ways to run a collective on a known network, what each costs, and which is the fastest.
 *
 * A way is a planner with the order of the nodes, or the groups, that it is to use. The groups are those of the
 * topology: hosts below one switch, at every level of the tree. All ranks of a group make the same menu and choose
 * alike.
 */
#ifndef TUNE_CHOOSE_H
#define TUNE_CHOOSE_H

#include "tune/cost.h"

struct tune_way {
	const struct planner *planner;
	const uint32_t *order;    /* plan_spec.order; NULL: by rank      */
	const uint32_t *group_of; /* plan_spec.group_of; NULL: none      */
	const uint32_t *zone_of;  /* plan_spec.zone_of; NULL: none       */
	uint32_t groups;          /* how many; 0: none                   */
	struct tune_load load;
};

#define TUNE_WAYS_MOST 16u

/* Holds what its ways point to. */
struct tune_menu {
	uint32_t nodes;
	uint32_t count;
	struct tune_way ways[TUNE_WAYS_MOST];
	uint32_t *order;                          /* the nodes as they stand in the tree, neighbours side by side */
	uint32_t *group_of[TOPOLOGY_DEPTH_MAX];   /* by level, the finest first */
	uint32_t group_count[TOPOLOGY_DEPTH_MAX];
	uint32_t *zone_of[TOPOLOGY_DEPTH_MAX];    /* by level: what the finest groups are in */
	uint32_t levels;
};

/* The ways of a collective among nodes that stand on network->place of network->topology. ESP_ENOMEM. */
ESP_CHECKED enum esp_status tune_menu_open(const struct tune_network *network, enum plan_collective collective,
                                           struct tune_menu **out, struct error *err);
void tune_menu_close(struct tune_menu *menu); /* NULL is fine */

/* The chunk that a call by this way would be cut into. */
typedef uint64_t tune_chunk_fn(void *context, const struct tune_way *way);

/* Which ways are asked for. */
struct tune_wish {
	const struct planner *planner; /* NULL: any                                           */
	const uint32_t *group_of;      /* by node: with these groups; NULL: any, or none      */
};

/*
 * The fastest way for so many bytes, of those that are wished for; NULL: there is none. The first of two that cost the
 * same.
 */
const struct tune_way *tune_choose(const struct tune_menu *menu, struct tune_wish wish, uint64_t bytes,
                                   tune_chunk_fn *chunk, void *context, double *out_seconds);

/* A way that could be taken, and what it would take. */
struct tune_offer {
	const struct tune_way *way;
	double seconds;
};

/*
 * The fastest ways for so many bytes, of those that are wished for, the fastest first and most of them at most;
 * tune_choose() would take the first. Adds to the count offers that are there already, which may be of another wish.
 * Returns how many there are then.
 */
uint32_t tune_compare(const struct tune_menu *menu, struct tune_wish wish, uint64_t bytes, tune_chunk_fn *chunk,
                      void *context, struct tune_offer *offers, uint32_t count, uint32_t most);

#endif
