/*
 * world_kills.c - a switch that is killed and started anew at random moments, and how far it helps in between.
 */
#include "world_state.h"

#define HELPS_AFTER (200 * MS) /* of a start */

static void post(struct world *world, uint64_t in_ns, enum event_kind kind)
{
	world_post(world, &(struct event){.at = world->now + in_ns, .kind = kind});
}

void world_begin_kills(struct world *world)
{
	world->totals->least_before = 1;
	post(world, HELPS_AFTER, SHARE);
}

/* Contributions that owners added themselves, since the flow began. */
static uint64_t taken(const struct world *world)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < world->jobs[0].members; i++)
		sum += succession_owned(&world->jobs[0].nodes[i].stream).taken;
	return sum;
}

static void begin_share(struct world *world)
{
	world->contributions = world->totals->contributions;
	world->taken = taken(world);
	post(world, 50 * MS + rng_below(&world->rng, 500 * MS), KILL);
}

/* A number under way at the end of the measurement has been counted in parts. */
static void end_share(struct world *world)
{
	double all = (double)(world->totals->contributions - world->contributions);
	double share = all > 0 ? 1 - (double)(taken(world) - world->taken) / all : 0;

	if (share < world->totals->least_before)
		world->totals->least_before = share;
}

void world_kill(struct world *world, const struct event *event)
{
	struct net_switch *at = &world->switches[0];

	if (event->kind == SHARE) {
		begin_share(world);
	} else if (event->kind == START) {
		at->is_dead = false;
		world_reboot(world, 0);
		post(world, HELPS_AFTER, SHARE);
	} else {
		end_share(world);
		at->is_dead = true;
		if (++world->totals->killed < world->options.kills)
			post(world, rng_below(&world->rng, 400 * MS), START);
	}
}

void world_progress(struct world *world, struct node *node)
{
	double stall = (double)(world->now - node->progress_at) / 1e9;

	if (stall > world->totals->stall_s)
		world->totals->stall_s = stall;
	node->progress_at = world->now;
}
