/*
 * planner.h - the parts of a planner. Private to src/plan.
 *
 * A planner fills tables when a plan is opened and then answers for any (node, chunk). All but the allreduce of
 * butterfly, exchange and twin are *routes*: the contributions of a chunk flow up a tree to its owner, are complete
 * there, and flow down a tree to its receivers. A planner only describes the two trees; route.c turns that into rows
 * for every collective, leaving out steps that a piece with one contributor or one receiver does not need. Where
 * workers are taken in an order of their own, the nodes that a planner is asked about, and answers with, are positions
 * in that order; plan.c translates.
 */
#ifndef PLAN_PLANNER_H
#define PLAN_PLANNER_H

#include "plan/plan.h"

/* One chunk of one plan, as the functions below are asked about it. */
struct route {
	const struct plan *plan;
	uint64_t chunk;
	struct plan_piece piece;
	uint32_t owner;
};

struct route_builder;

struct planner {
	const char *name;
	const char *summary;
	bool needs_groups;
	bool has_extra; /* always has extra nodes; central and tree have them if asked to */
	bool direct;  /* a chunk from one worker to one other passes no third */
	bool movable; /* owners may move: the order of addition does not follow from them */

	/* Sets nodes and fills tables; plan->chunks, workers, nodes (= workers) and groups are set. May be NULL. */
	enum esp_status (*prepare)(struct plan *plan, const struct plan_spec *spec, struct error *err);

	/* Where the sum of the chunk is complete. */
	uint32_t (*owner)(const struct route *route);
	/*
	 * The next hop from node towards the owner, and the hop before node on the way down. Not asked of the owner.
	 * PLAN_NONE: nothing passes this extra node.
	 */
	uint32_t (*up)(const struct route *route, uint32_t node);
	uint32_t (*down)(const struct route *route, uint32_t node);
	/* The terms that node adds up when all workers contribute: calls of fold_*() below, in order. */
	void (*gather)(const struct route *route, uint32_t node, struct route_builder *builder);
	/* The nodes that node passes the result to when all workers want it: calls of plan_fan_to(). */
	void (*spread)(const struct route *route, uint32_t node, struct route_builder *builder);

	/* plan_turn(), of a planner that makes laps of more than one chunk (plan->lap). NULL: it makes none. */
	uint32_t (*turn)(const struct plan *plan, uint64_t chunk, uint32_t from, uint32_t to, uint32_t nth);

	/* Writes the row itself instead of the five above, and returns true; or returns false. May be NULL. */
	bool (*row)(const struct plan *plan, uint32_t node, const struct plan_piece *piece, struct plan_row *row);
};

/* gather() calls these: terms are added in the order given; self is what this node has so far. */
void plan_fold_begin(struct route_builder *builder);
void plan_fold_from(struct route_builder *builder, uint32_t node);
void plan_fold_self(struct route_builder *builder);
void plan_fold_end(struct route_builder *builder);
/* One fold of self and other, the lower number first. */
void plan_fold_pair(struct route_builder *builder, uint32_t self, uint32_t other);

/* spread() calls this, nearest or heaviest child first. */
void plan_fan_to(struct route_builder *builder, uint32_t node);

/* The piece of a chunk as planners see it: with positions in place of workers (plan->order). */
struct plan_piece plan_seated_piece(const struct plan *plan, uint64_t chunk);

static inline uint32_t plan_seat(const struct plan *plan, uint32_t node)
{
	return plan->seat_of && node < plan->workers ? plan->seat_of[node] : node;
}

static inline uint32_t plan_seated(const struct plan *plan, uint32_t seat)
{
	return plan->order && seat < plan->workers ? plan->order[seat] : seat;
}

/* The row of a position by its planner's trees. */
void plan_route_row(const struct planner *planner, const struct plan *plan, uint32_t node, uint64_t chunk,
                    struct plan_row *row);

/* Where a piece has one side that is a single worker, that worker owns it; else PLAN_NONE. A broadcast is free. */
uint32_t plan_route_fixed_owner(const struct route *route);

/* plan->owner: each chunk whose owner is free to one of `bins` nodes, by longest first. */
enum esp_status plan_spread_owners(struct plan *plan, uint32_t bins, struct error *err);

#define PLANNER_NODES_MAX (1u << 26) /* workers and extra nodes */
/* So many extra nodes more; their groups, if groups are known, are for the caller to set. */
enum esp_status plan_add_nodes(struct plan *plan, uint32_t count, struct error *err);

/* The star, shared by flat, central, twin and exchange: all send to the owner, the owner to all. */
uint32_t star_up(const struct route *route, uint32_t node);
void star_gather(const struct route *route, uint32_t node, struct route_builder *builder);
void star_spread(const struct route *route, uint32_t node, struct route_builder *builder);

/* Chunks of each owner that a lap has by default. */
#define LAP_CHUNKS 4u

/*
 * The lap of an allreduce whose planner has turns: so many chunks of each owner. A few chunks in all, which any window
 * has room for, are numbered one by one, and spared the sorting.
 */
uint32_t plan_allreduce_lap(const struct plan *plan, uint32_t owners, uint32_t each);

/* The ring, shared by ring and ring-switch. */
uint32_t ring_lap(const struct chunks *chunks, uint32_t each);
uint32_t ring_after(const struct route *route, uint32_t node);
void ring_gather(const struct route *route, uint32_t node, struct route_builder *builder);

static inline uint32_t plan_group_size(const struct plan *plan, uint32_t group)
{
	return plan->member_first[group + 1] - plan->member_first[group];
}

/* The hierarchy, shared by two-level and hub. members fills plan->member and member_first. */
enum esp_status two_level_members(struct plan *plan, struct error *err);
uint32_t two_level_up(const struct route *route, uint32_t node);
void two_level_gather(const struct route *route, uint32_t node, struct route_builder *builder);
void two_level_spread(const struct route *route, uint32_t node, struct route_builder *builder);

/* The binomial trees of the hypercube, shared by halving-doubling and butterfly. */
uint32_t hypercube_owner(const struct route *route);
uint32_t hypercube_up(const struct route *route, uint32_t node);
void hypercube_gather(const struct route *route, uint32_t node, struct route_builder *builder);
void hypercube_spread(const struct route *route, uint32_t node, struct route_builder *builder);

#endif
