/*
 * fabric_hub.c - the hub behind its gate: applies updates and sums, and checks each.
 */
#include <inttypes.h>
#include <string.h>

#include "sim/fabric/fabric_world_state.h"

/* The bytes that came: a sum, or an update by itself. Its members' results follow. */
static void add_to_hub(struct fabric_world *world, const struct gate_result *result)
{
	if (world->sum_versions)
		fabric_fail(world, "worker %u's update is applied before the gate has told all of a sum", result->worker);
	world->sum_base = world->result->applied;
	world->sum_versions = result->count < 64 ? (UINT64_C(1) << result->count) - 1 : UINT64_MAX;
	for (uint32_t i = 0; i < FABRIC_VALUES; i++)
		world->hub[i] += world->workers[result->worker].sum[i];
	if (result->count > 1) {
		world->result->sums++;
		world->result->summed += result->count;
	}
}

/* Each version is one update's. */
static void check_version(struct fabric_world *world, const struct gate_result *result)
{
	uint64_t at = result->version - world->sum_base - 1;

	if (at >= 64 || !(world->sum_versions >> at & 1))
		fabric_fail(world, "version %" PRIu64 " after %" PRIu64 " updates", result->version, world->result->applied);
	else
		world->sum_versions &= ~(UINT64_C(1) << at);
}

static void apply(struct fabric_world *world, const struct gate_result *result)
{
	const struct fabric_worker *of = &world->workers[result->worker];

	if (result->count > 0)
		add_to_hub(world, result);
	check_version(world, result);
	world->result->applied++;
	world->result->applied_warm += world->now >= world->config->warm_ns;
	if (result->version - of->computed_from > world->config->bound)
		fabric_fail(world, "an update of worker %u is applied with a delay of %" PRIu64 ", and the bound is %u",
		            result->worker, result->version - of->computed_from, world->config->bound);
	if (of->made <= world->applied_made[result->worker])
		fabric_fail(world, "update %" PRIu64 " of worker %u is applied twice", of->made, result->worker);
	world->applied_made[result->worker] = of->made;
	for (uint32_t i = 0; i < FABRIC_VALUES; i++)
		world->shadow[i] += of->values[i];
	if (!world->sum_versions && memcmp(world->hub, world->shadow, sizeof(world->hub)) != 0)
		fabric_fail(world, "the hub's sum after version %" PRIu64 " is not that of the same updates",
		            world->result->applied);
	world->result->delay_sum += result->delay;
	if (result->delay > world->result->delay_most)
		world->result->delay_most = result->delay;
	if (world->config->learner)
		world->config->learner->apply(world->config->learner->user, result->worker);
}

static void settle(struct fabric_world *world, const struct gate_result *result)
{
	switch (result->why) {
	case GATE_APPLIED:
		apply(world, result);
		if (world->config->mutant == FABRIC_TWICE && rng_chance(&world->rng, 1, 8))
			fabric_send_offer(world, result->worker);
		else
			fabric_end_update(world, result->worker, LEDGER_APPLIED, result->delay);
		break;
	case GATE_BROKEN:
		fabric_again(world, result->worker);
		break;
	default:
		fabric_send_forget(world, result->worker);
		fabric_end_update(world, result->worker, result->why == GATE_GONE ? LEDGER_GONE : LEDGER_LATE_AT_HUB,
		                  result->delay);
	}
}

void fabric_pump(struct fabric_world *world)
{
	struct gate_result result;

	while (!world->result->failure[0] && gate_next(&world->gate, world->now, &result))
		settle(world, &result);
	if (world->sum_versions && !world->result->failure[0])
		fabric_fail(world, "the gate has not told all members of the sum after version %" PRIu64, world->sum_base);
}
