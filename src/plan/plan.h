/*
 * plan.h - a plan: for every node and chunk, which messages it sends, adds up and delivers.
 *
 * A plan is a pure function (node, chunk) -> row of steps, plus small tables (the masters of slots). A node works out
 * its own rows; the checker, the simulator and the drawings walk rows one by one, so a plan for thousands of nodes
 * costs no more memory than its tables. Any thread may read a plan; moving masters needs it unshared.
 */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "base/error.h"
#include "plan/chunks.h"
#include "plan/step.h"

struct plan_masters; /* masters.h */
struct plan_rows;    /* rows.h    */
struct planner;

struct plan_spec {
	struct chunks_spec chunks;
	bool in_place;            /* a worker that gives and wants a chunk has it at one address */
	const uint32_t *group_of; /* group of each worker, numbered from 0 without gaps; NULL: none. Copied */
	/*
	 * The workers in the order in which the planner takes them: a ring goes around in it, halving-doubling pairs
	 * neighbours in it first. NULL: by rank. Copied. Not for planners that need groups.
	 */
	const uint32_t *order;
	/* three-level: zone of each group, numbered from 0 without gaps; NULL: each its own. Copied */
	const uint32_t *zone_of;
	uint32_t fanout;          /* tree: children per node; 0: 2 */
	bool leaves;              /* tree: the workers are the leaves, inner nodes are extra nodes */
	/* central, switch, switch-sum, switch-copy: so many extra nodes own the chunks, in turn. 0: workers do */
	uint32_t servers;
	/* two-level: the masters, for these groups; NULL: spread by size over all. Copied */
	const struct plan_masters *masters;
	uint32_t lap_chunks;      /* ring, halving-doubling: chunks of each owner that are numbered together; 0: 4 */
};

/* A message of a row that was read, in a plan with laps. */
struct plan_sent {
	uint32_t to, turn;
};

struct plan {
	const struct planner *planner;
	struct chunks chunks;
	uint32_t workers; /* nodes that hold data: 0 .. workers - 1       */
	uint32_t nodes;   /* with servers, aggregators and switches       */
	uint32_t servers; /* of the extra nodes, the first so many own chunks: they are machines, as workers are */
	/* of the extra nodes, the last so many are switches of the network; one per group and one above, or one */
	uint32_t switches;
	bool in_place;
	uint32_t group_count; /* 0: no groups known                       */
	uint32_t *group_of;   /* of every node, extra ones too; or NULL   */
	/*
	 * Where workers are taken in another order than by rank, planners number them by their positions in it: rows,
	 * pieces and tables of owners have positions inside the planner, and ranks everywhere else. NULL: the same.
	 */
	uint32_t *order;   /* by position: the worker */
	uint32_t *seat_of; /* by worker           */

	uint32_t lap; /* plan_lap(); 0: 1 */
	/* chunks that are in flight whatever the settings say, so that all owners have something to do; 0: no matter */
	uint32_t abreast;
	const struct plan_rows *rows; /* rows.h; NULL: rows are computed */

	/* The planners' tables; each uses what it needs. */
	uint32_t fanout;
	uint32_t level_count;
	uint32_t level_first[34]; /* tree with leaves: first node of each level */
	uint32_t *owner;          /* by chunk: where its sum is complete; or NULL */
	uint32_t *global_group;   /* by chunk: the group of the global master     */
	uint32_t *local_master;   /* by group and chunk                           */
	uint32_t *member;         /* the workers, group by group, ascending       */
	uint32_t *member_first;   /* group_count + 1 entries into member          */
	uint32_t zone_count;
	uint32_t *zone_of;        /* by group                                     */
	uint32_t *zone_group;     /* the groups, zone by zone, ascending          */
	uint32_t *zone_first;     /* zone_count + 1 entries into zone_group       */
	uint32_t *zone_top;       /* by zone and chunk: the group of its master   */
	uint32_t *owner_zone;     /* by chunk                                     */

	/*
	 * A plan read from a file holds its rows: the row of each node, chunk by chunk, is at
	 * steps[row_at[...]], a PLAN_ROW and its steps. Equal rows are kept once; the first is empty.
	 */
	struct plan_step *steps;
	uint64_t step_count;
	uint64_t *row_at;
	/*
	 * And with laps the turns of what its rows send, where the row stands in steps: first how many there are (in `to`),
	 * then each of them, by the node it goes to, and as the row sends them. NULL: no laps.
	 */
	struct plan_sent *turns;
};

/*
 * The planners, by name: ring, halving-doubling, butterfly, exchange, tree, double-tree,
 * flat, central, twin, two-level, three-level, hub, switch, switch-sum, switch-copy, ring-switch. plan_planner(i)
 * walks them until NULL.
 */
const struct planner *plan_planner(unsigned index);
const struct planner *plan_planner_find(const char *name);
extern const struct planner planner_ring, planner_halving_doubling, planner_butterfly, planner_exchange, planner_tree,
	planner_double_tree, planner_flat, planner_central, planner_twin, planner_two_level, planner_three_level,
	planner_hub, planner_switch, planner_switch_sum, planner_switch_copy, planner_ring_switch;
const char *plan_planner_name(const struct planner *planner);
const char *plan_planner_summary(const struct planner *planner);
bool plan_planner_needs_groups(const struct planner *planner);
/* Does it always need nodes that no worker is: hubs, switches? Then it is no plan for a job of workers alone. */
bool plan_planner_has_extra(const struct planner *planner);

/* Makes a plan; *out is the caller's to close. */
ESP_CHECKED enum esp_status plan_open(const struct planner *planner, const struct plan_spec *spec, struct plan **out,
                                      struct error *err);
void plan_close(struct plan *plan); /* NULL is fine */

/* The steps of node for chunk, into *row (which is cleared first). No steps: it takes no part. */
ESP_CHECKED enum esp_status plan_row(const struct plan *plan, uint32_t node, uint64_t chunk, struct plan_row *row);

/*
 * The first chunk from `chunk` on in which node may take part, or chunk_count. Lets a
 * node of an all-to-all skip the pairs that it has nothing to do with.
 */
uint64_t plan_next_chunk(const struct plan *plan, uint32_t node, uint64_t chunk);

/*
 * Messages between two nodes are numbered lap by lap, a lap being so many chunks that follow each other; within a lap
 * by turn, then chunk by chunk. Without turns a lap is one chunk. nth: of the messages from the same node to the same
 * other, in one chunk, counted from 0. Along every row turns do not fall from one receive to the next, and a send has a
 * later turn than every receive before it; the checker sees to that (docs/plans.md).
 */
static inline uint32_t plan_lap(const struct plan *plan)
{
	return plan->lap > 1 ? plan->lap : 1;
}
uint32_t plan_turn(const struct plan *plan, uint64_t chunk, uint32_t from, uint32_t to, uint32_t nth);

/*
 * The nodes that take part in a piece, where that is known to be at most the worker that gives
 * and the worker that wants it: their number, and themselves in out. 0: any may.
 */
uint32_t plan_pair(const struct plan *plan, const struct plan_piece *piece, uint32_t out[2]);

/* Do places a and b of this node's chunk share memory (in-place calls)? */
bool plan_aliases(const struct plan *plan, const struct plan_piece *piece, uint32_t node, uint8_t a, uint8_t b);

/*
 * Masters can be moved between collectives: the bits of results stay the same, because
 * the order of addition follows from ranks and groups alone. Refused (ESP_EINVAL) where
 * the planner or the collective fixes the place.
 */
ESP_CHECKED enum esp_status plan_move_owner(struct plan *plan, uint64_t chunk, uint32_t node);
ESP_CHECKED enum esp_status plan_move_local(struct plan *plan, uint64_t chunk, uint32_t group, uint32_t node);
ESP_CHECKED enum esp_status plan_move_global(struct plan *plan, uint64_t chunk, uint32_t group);

#endif
