/*
 * groups_test.c - groups of some of the nodes, opened and closed while others run, and what goes wrong in one of them.
 *
 *     groups_test [--seed FIRST] [--count N]
 *
 * Every seed is a cluster of up to twelve nodes and sixteen groups of any of them, in any order,
 * each with a few calls. In three of four clusters something goes wrong: a node is lost, a
 * member gives up, or one starts another call than the others. Groups that it does not concern
 * must not notice: all their calls complete with the right elements. In the one that it does, every
 * call ends, right or with an error that says what happened. Whatever a call gives back is overwritten at once.
 */
#include <errno.h> /* program_invocation_name */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "cluster.h"
#include "math/math.h"

enum mishap { NOTHING, LOSS, ABORT, OTHER_CALL, MISHAPS };

static uint32_t pick(struct rng *rng, const uint32_t *from, uint32_t count)
{
	return from[rng_below(rng, count)];
}

/* ---- drawing ---- */

static void shuffle(struct rng *rng, uint32_t *values, uint32_t count)
{
	for (uint32_t i = count; i-- > 1;) {
		uint32_t j = (uint32_t)rng_below(rng, i + 1), other = values[j];

		values[j] = values[i];
		values[i] = other;
	}
}

/* All nodes, every k-th of them, or any in any order. */
static void draw_group(struct cluster *cluster, struct rng *rng, uint32_t number)
{
	uint32_t nodes = cluster->spec.nodes, ranks[16], count = 0;
	uint32_t stride = 1 + (uint32_t)rng_below(rng, 3), shape = (uint32_t)rng_below(rng, 4);
	uint16_t channel = (uint16_t)(number * 4099 + rng_below(rng, 4000)); /* each its own */

	for (uint32_t i = shape == 0 ? 0 : (uint32_t)rng_below(rng, nodes); i < nodes; i += shape == 1 ? stride : 1)
		ranks[count++] = i;
	if (shape >= 2) {
		for (count = 0; count < nodes; count++)
			ranks[count] = count;
		shuffle(rng, ranks, nodes);
		count = 1 + (uint32_t)rng_below(rng, nodes);
	}
	cluster_add_group(cluster, channel, shape == 0 ? NULL : ranks, count, rng_below(rng, 3 * cluster->spec.delay_ns + 1));
}

static void draw_call(struct cluster *cluster, struct rng *rng, uint32_t group)
{
	uint32_t members = cluster->groups[group].count, planners = 0;
	enum plan_collective collective = (enum plan_collective)rng_below(rng, PLAN_COLLECTIVE_COUNT);
	enum esp_type type = (enum esp_type)rng_below(rng, ESP_BYTES);
	struct plan *plan;

	while (plan_planner(planners))
		planners++;
	for (;;) {
		plan = cluster_draw_plan(rng, plan_planner((unsigned)rng_below(rng, planners)), collective, members,
		                         (uint32_t)math_type_bytes(type));
		if (plan->nodes <= members)
			break;
		plan_close(plan); /* it wants servers, and there is nobody left */
	}
	cluster_add(cluster, plan, true, type, ESP_SUM, 1, FILL_SMALL, rng_next(rng))->group = group;
}

static void draw(struct cluster *cluster, struct rng *rng, enum mishap mishap)
{
	static const uint32_t credits[] = {1, 2, 4, 16}, active[] = {1, 2, 4, 64};
	static const uint32_t fragments[] = {0, 0, 1, 7, 100}, flights[] = {0, 1, 2, 8};
	static const uint32_t firsts[] = {0, 0, UINT32_MAX - 3, INT32_MAX - 2u};
	struct cluster_spec spec = {
		.seed = rng_next(rng),
		.nodes = 2 + (uint32_t)rng_below(rng, 11),
		.lanes = 1 + (uint32_t)rng_below(rng, 2),
		.credits = pick(rng, credits, 4),
		.active_chunks = pick(rng, active, 4),
		.slot_bytes = 65536,
		.first_index = pick(rng, firsts, 4),
		.delay_ns = 1 + rng_below(rng, 100000),
		.start_spread_ns = rng_below(rng, 300000),
		.fragment_most = pick(rng, fragments, 5),
		.flight_most = pick(rng, flights, 4),
		.carry = (enum inproc_carry)rng_below(rng, INPROC_MIXED + 1),
		.checked = rng_chance(rng, 1, 2),
		.victim = PLAN_NONE,
		.abort_group = PLAN_NONE,
		.scribble = true,
	};
	uint64_t span = 4 * (spec.delay_ns + spec.start_spread_ns);

	if (mishap == LOSS) {
		spec.victim = (uint32_t)rng_below(rng, spec.nodes);
		spec.victim_after_ns = rng_below(rng, span);
	}
	sim_cluster_open(cluster, &spec);
	for (uint32_t groups = 1 + (uint32_t)rng_below(rng, CLUSTER_GROUPS_MOST), i = 0; i < groups; i++)
		draw_group(cluster, rng, i);
	for (uint32_t i = 0; i < cluster->group_count; i++) {
		for (uint64_t calls = 1 + rng_below(rng, CLUSTER_CALLS_MOST / CLUSTER_GROUPS_MOST); calls > 0; calls--)
			draw_call(cluster, rng, i);
	}
	if (mishap == ABORT) {
		cluster->spec.abort_group = (uint32_t)rng_below(rng, cluster->group_count);
		cluster->spec.abort_place =
			(uint32_t)rng_below(rng, cluster->groups[cluster->spec.abort_group].count);
		cluster->spec.abort_after_ns = rng_below(rng, span);
	}
	if (mishap == OTHER_CALL) {
		struct cluster_call *call = &cluster->calls[rng_below(rng, cluster->call_count)];

		call->odd = (uint32_t)rng_below(rng, cluster->groups[call->group].count);
	}
}

/* ---- what must come of it ---- */

static void fail(const struct cluster_call *call, uint64_t seed, const char *why)
{
	char text[256];

	cluster_describe(call, text, sizeof(text));
	check_fail(__FILE__, __LINE__, "%s\n  %s\n  replay: %s --seed %" PRIu64 " --count 1", why, text,
	           program_invocation_name, seed);
}

/* Of the calls of a group, the one with which a member does not agree, counted from 0; none: UINT64_MAX. */
static uint64_t odd_call(const struct cluster *cluster, uint32_t group, uint32_t *out_place)
{
	uint64_t number = 0;

	for (uint32_t i = 0; i < cluster->call_count; i++) {
		if (cluster->calls[i].group != group)
			continue;
		if (cluster->calls[i].odd != PLAN_NONE) {
			*out_place = cluster->calls[i].odd;
			return number;
		}
		number++;
	}
	return UINT64_MAX;
}

/*
 * Is this a failure that the group could have, as this member sees it? Whoever reads what another
 * member has offered may first see that this one has taken it back.
 */
static bool is_explained(const struct cluster *cluster, uint32_t group_index, uint32_t place)
{
	const struct cluster_group *group = &cluster->groups[group_index];
	const struct cluster_member *member = &group->members[place];
	const struct exec_failure *failure = &member->failure;
	bool has_victim = cluster->spec.victim != PLAN_NONE && cluster_place(group, cluster->spec.victim) != PLAN_NONE;
	uint32_t odd = PLAN_NONE;
	uint64_t number = odd_call(cluster, group_index, &odd);

	if (!has_victim && cluster->spec.abort_group != group_index && odd == PLAN_NONE)
		return false;
	if (group->refused)
		return has_victim;
	if (failure->status == ESP_EPEER)
		return failure->node != cluster_rank(group, place) && cluster_place(group, failure->node) != PLAN_NONE;
	if (cluster->spec.abort_group == group_index)
		return failure->status == ESP_EABORTED && failure->node == PLAN_NONE;
	bool names = place == odd ? failure->node != cluster_rank(group, odd) : failure->node == cluster_rank(group, odd);
	return odd != PLAN_NONE && failure->status == ESP_EMISMATCH && (member->heard || (names && failure->call == number));
}

static void check_call(const struct cluster *cluster, struct cluster_call *call, uint64_t seed, uint64_t counts[2])
{
	const struct cluster_group *group = &cluster->groups[call->group];
	char why[200];

	for (uint32_t place = 0; place < call->plan->nodes; place++) {
		if (cluster_rank(group, place) == cluster->spec.victim)
			call->status[place] = ESP_EPEER; /* whatever it has is gone with it */
		else if (call->status[place] != ESP_OK && !is_explained(cluster, call->group, place)) {
			snprintf(why, sizeof(why), "place %u ended with status %d; its failure is %d, naming %d, call %" PRIu64 "%s",
			         place, call->status[place], group->members[place].failure.status,
			         (int)group->members[place].failure.node, group->members[place].failure.call,
			         group->members[place].heard ? ", as it heard" : "");
			fail(call, seed, why);
		}
		if (call->status[place] == ESP_PENDING && !group->refused && !group->members[place].failed)
			fail(call, seed, "a call did not end");
		counts[call->status[place] != ESP_OK]++;
	}
	if (!cluster_matches(call, why, sizeof(why)))
		fail(call, seed, why);
}

static void run_seed(uint64_t seed, uint64_t counts[MISHAPS][2])
{
	static struct cluster cluster;
	struct rng rng;
	enum mishap mishap = (enum mishap)(seed % MISHAPS);

	rng_init(&rng, seed);
	draw(&cluster, &rng, mishap);
	cluster_run(&cluster);
	for (uint32_t i = 0; i < cluster.call_count; i++)
		check_call(&cluster, &cluster.calls[i], seed, counts[mishap]);
	/* Everything that could be closed was closed. */
	for (uint32_t i = 0; i < cluster.group_count; i++) {
		for (uint32_t place = 0; place < cluster.groups[i].count; place++) {
			uint32_t rank = cluster_rank(&cluster.groups[i], place);

			CHECK_MSG(rank == cluster.spec.victim || !cluster.groups[i].members[place].open,
			          "a stream was left open\n  replay: %s --seed %" PRIu64 " --count 1", program_invocation_name, seed);
		}
	}
	for (uint32_t i = 0; i < cluster.spec.nodes * cluster.spec.lanes; i++)
		CHECK(i / cluster.spec.lanes == cluster.spec.victim || lane_unfinished(cluster.lanes[i]) == 0);
	sim_cluster_close(&cluster);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"nothing", "a loss", "a member that gives up", "another call"};
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 1200);
	uint64_t counts[MISHAPS][2] = {{0}};

	for (uint64_t seed = first; seed - first < count; seed++)
		run_seed(seed, counts);
	for (unsigned i = 0; i < MISHAPS; i++) {
		printf("%s: %" PRIu64 " calls of members completed, %" PRIu64 " did not\n", names[i], counts[i][0], counts[i][1]);
		CHECK(count < 100 || (counts[i][0] > 0 && (counts[i][1] > 0) == (i > 0)));
	}
	return 0;
}
