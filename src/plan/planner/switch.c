/*
 * switch.c - plans with switches that add, or copy: in-network aggregation and multicast. Pure.
 *
 *                 top                    a switch per group and one above them; one switch
 *               /     \                  if there are no groups. Switches are extra nodes,
 *         switch 0   switch 1            the last of the plan; they hold no data and are in
 *         / |  \       |   \             the network, so that data from several workers
 *        0  1  server  2    3            passes each link once.
 *
 * The tree is the same up and down, with the owner of the chunk at its root: its switch adds the data from
 * below and from the top and sends the sum to the owner, which completes it and sends it back to the switch,
 * which copies it to all. The owner is one of `servers` extra nodes, in turn, or a worker, as in flat. Four
 * planners: the switches add, or copy, or both; or the sum goes around a ring and the switches copy.
 */
#include "plan/planner.h"

/* ---- places in the tree ---- */

static uint32_t switch_first(const struct plan *plan)
{
	return plan->nodes - plan->switches;
}

static bool has_top(const struct plan *plan)
{
	return plan->switches > 1;
}

static uint32_t switch_top(const struct plan *plan)
{
	return plan->nodes - 1;
}

/* The switch of a node; for a group's switch: itself. */
static uint32_t switch_of(const struct plan *plan, uint32_t node)
{
	return switch_first(plan) + (has_top(plan) ? plan->group_of[node] : 0);
}

/* True if the worker is in the group of this switch. */
static bool is_below(const struct plan *plan, uint32_t at, uint32_t worker)
{
	return switch_of(plan, worker) == at;
}

static enum esp_status switch_prepare(struct plan *plan, const struct plan_spec *spec, struct error *err)
{
	uint32_t groups = plan->group_count, switches = groups > 1 ? groups + 1 : 1;
	enum esp_status status = plan_add_nodes(plan, spec->servers + switches, err);

	if (status != ESP_OK)
		return status;
	plan->switches = switches;
	plan->servers = spec->servers;
	for (uint32_t i = 0; plan->group_of && i < spec->servers; i++)
		plan->group_of[plan->workers + i] = i % groups;
	for (uint32_t i = 0; plan->group_of && i < switches; i++)
		plan->group_of[switch_first(plan) + i] = i < groups ? i : 0; /* the top counts as the first group's */
	return plan_spread_owners(plan, plan->workers, err);
}

static uint32_t switch_owner(const struct route *route)
{
	const struct plan *plan = route->plan;

	if (route->piece.to != PLAN_ALL)
		return route->piece.to;
	if (route->piece.from != PLAN_ALL)
		return route->piece.from;
	return plan->servers ? plan->workers + (uint32_t)(route->chunk % plan->servers) : plan->owner[route->chunk];
}

/* ---- the tree ---- */

/* True if there is a worker besides the owner; otherwise nothing passes a switch. */
static bool has_others(const struct route *route)
{
	return route->plan->workers > (route->owner < route->plan->workers ? 1u : 0u);
}

/* The next hop towards the owner; on the way down it is the previous hop. */
static uint32_t switch_towards(const struct route *route, uint32_t node)
{
	const struct plan *plan = route->plan;
	uint32_t last = switch_of(plan, route->owner);

	if (node < plan->workers)
		return switch_of(plan, node);
	if (node < switch_first(plan) || !has_others(route))
		return PLAN_NONE; /* a server of other chunks, or an unused switch */
	if (node == last)
		return route->owner;
	return has_top(plan) && node == switch_top(plan) ? last : switch_top(plan);
}

/* Data from one worker to one other needs no switch. */
static uint32_t switch_up(const struct route *route, uint32_t node)
{
	return route->piece.from != PLAN_ALL ? route->owner : switch_towards(route, node);
}

/* A switch adds its group in the order of ranks, the owner's also the sum from the top; the top adds the groups. */
static void switch_add(const struct route *route, uint32_t node, struct route_builder *builder)
{
	const struct plan *plan = route->plan;
	uint32_t first = switch_first(plan), top = switch_top(plan), last = switch_of(plan, route->owner);

	plan_fold_begin(builder);
	if (has_top(plan) && node == top) {
		for (uint32_t at = first; at < top; at++) {
			if (at != last)
				plan_fold_from(builder, at);
		}
	} else {
		for (uint32_t worker = 0; worker < plan->workers; worker++) {
			if (worker != route->owner && is_below(plan, node, worker))
				plan_fold_from(builder, worker);
		}
		if (has_top(plan) && node == last)
			plan_fold_from(builder, top);
	}
	plan_fold_end(builder);
}

static void switch_gather(const struct route *route, uint32_t node, struct route_builder *builder)
{
	if (node >= switch_first(route->plan)) {
		switch_add(route, node, builder);
	} else if (node == route->owner && has_others(route)) {
		plan_fold_begin(builder);
		plan_fold_from(builder, switch_of(route->plan, node));
		plan_fold_self(builder);
		plan_fold_end(builder);
	}
}

static void switch_spread(const struct route *route, uint32_t node, struct route_builder *builder)
{
	const struct plan *plan = route->plan;
	uint32_t first = switch_first(plan), top = switch_top(plan), last = switch_of(plan, route->owner);

	if (node == route->owner) {
		if (has_others(route))
			plan_fan_to(builder, last);
	} else if (has_top(plan) && node == top) {
		for (uint32_t at = first; at < top; at++) {
			if (at != last)
				plan_fan_to(builder, at);
		}
	} else if (node >= first) {
		if (has_top(plan) && node == last)
			plan_fan_to(builder, top);
		for (uint32_t worker = 0; worker < plan->workers; worker++) {
			if (worker != route->owner && is_below(plan, node, worker))
				plan_fan_to(builder, worker);
		}
	}
}

const struct planner planner_switch = {
	.name = "switch",
	.summary = "switches add on the way to the owner and copy on the way back: each link carries a chunk once each way",
	.has_extra = true,
	.direct = true,
	.prepare = switch_prepare,
	.owner = switch_owner,
	.up = switch_up,
	.down = switch_towards,
	.gather = switch_gather,
	.spread = switch_spread,
};

const struct planner planner_switch_sum = {
	.name = "switch-sum",
	.summary = "switches add on the way to the owner, which sends the result to each: in-network aggregation",
	.has_extra = true,
	.direct = true,
	.prepare = switch_prepare,
	.owner = switch_owner,
	.up = switch_up,
	.down = star_up,
	.gather = switch_gather,
	.spread = star_spread,
};

const struct planner planner_switch_copy = {
	.name = "switch-copy",
	.summary = "each sends to the owner, and switches copy its result to all: multicast",
	.has_extra = true,
	.direct = true,
	.prepare = switch_prepare,
	.owner = switch_owner,
	.up = star_up,
	.down = switch_towards,
	.gather = star_gather,
	.spread = switch_spread,
};

/* ---- the ring ---- */

static enum esp_status ring_switch_prepare(struct plan *plan, const struct plan_spec *spec, struct error *err)
{
	struct plan_spec without = *spec;

	without.servers = 0;
	if (plan->chunks.collective == PLAN_ALLREDUCE)
		plan->lap = ring_lap(&plan->chunks, spec->lap_chunks);
	return switch_prepare(plan, &without, err);
}

static uint32_t ring_switch_up(const struct route *route, uint32_t node)
{
	return route->piece.from != PLAN_ALL ? route->owner : ring_after(route, node);
}

/* As in a ring, and then from switch to switch. */
static uint32_t ring_switch_turn(const struct plan *plan, uint64_t chunk, uint32_t from, uint32_t to, uint32_t nth)
{
	uint32_t workers = plan->workers, owner = plan->owner[chunk], hops = (from + workers - owner) % workers;

	(void)to, (void)nth;
	if (from < workers)
		return hops == 0 ? workers - 1 : hops - 1;
	if (from == switch_of(plan, owner))
		return workers;
	return has_top(plan) && from == switch_top(plan) ? workers + 1 : workers + 2;
}

static void ring_switch_gather(const struct route *route, uint32_t node, struct route_builder *builder)
{
	if (node < route->plan->workers)
		ring_gather(route, node, builder);
}

const struct planner planner_ring_switch = {
	.name = "ring-switch",
	.summary = "each chunk once around to be summed, then switches copy it to all: a ring with multicast",
	.has_extra = true,
	.direct = true,
	.prepare = ring_switch_prepare,
	.owner = switch_owner,
	.up = ring_switch_up,
	.down = switch_towards,
	.gather = ring_switch_gather,
	.spread = switch_spread,
	.turn = ring_switch_turn,
};
