/*
 * star.c - the star around a chunk's owner, shared by flat, central, twin and exchange. Pure.
 */
#include "plan/planner.h"

uint32_t star_up(const struct route *route, uint32_t node)
{
	return node < route->plan->workers ? route->owner : PLAN_NONE;
}

void star_gather(const struct route *route, uint32_t node, struct route_builder *builder)
{
	if (node != route->owner)
		return;
	plan_fold_begin(builder);
	for (uint32_t worker = 0; worker < route->plan->workers; worker++) {
		if (worker == node)
			plan_fold_self(builder);
		else
			plan_fold_from(builder, worker);
	}
	plan_fold_end(builder);
}

void star_spread(const struct route *route, uint32_t node, struct route_builder *builder)
{
	uint32_t workers = route->plan->workers;

	if (node != route->owner)
		return;
	/* Begins behind the owner: otherwise all owners would send to worker 0 first. */
	for (uint32_t i = 1; i <= workers; i++) {
		uint32_t worker = (uint32_t)(((uint64_t)node + i) % workers);

		if (worker != node)
			plan_fan_to(builder, worker);
	}
}
