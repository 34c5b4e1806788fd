/*
 * retune_test.c - members that have prepared a call at different moments launch it by the same plan, and count it
 * alike.
 *
 *     retune_test [--seed N] [--count N]
 *
 * Two members of a group make the same calls in the same order while masters come and go. One prepares each call as it
 * is launched; the other has prepared them at any time before, as persistent calls are. Nothing is run: a call is
 * launched, looked at, and has landed, until the first window would close.
 */
#include "rank/comm/retune.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "rank/comm/comm.h"
#include "rank/comm/span.h"
#include "rank/comm/work.h"
#include "rank/rail/bandwidth.h"
#include "rank/state.h"
#include "tune/tuner.h"

enum { PODS = 4, RACKS = 2, HOSTS = 4, MEMBERS = PODS * RACKS * HOSTS, KINDS = 12 };
/* bytes of calls after which the first one would close, and a sum would have to be made */
#define WINDOW (UINT64_C(1) << 20)

struct actor {
	struct rank *context;
	struct comm *group;
	struct bandwidth *bandwidth;
	struct work *prepared[KINDS]; /* by kind of call; NULL: not yet */
};

/* Three levels: the fastest groups for one size are not those for another. */
static struct topology *make_topology(void)
{
	char *text;
	size_t length;
	struct topology *topology;
	struct error err;
	FILE *out = open_memstream(&text, &length);

	CHECK(out);
	fprintf(out, "topology 1\nswitch core\n");
	for (int p = 0; p < PODS; p++) {
		fprintf(out, "switch pod%d under core rate 50gbit delay 5us\n", p);
		for (int r = 0; r < RACKS; r++) {
			fprintf(out, "switch rack%d_%d under pod%d rate 50gbit delay 5us\n", p, r, p);
			for (int h = 0; h < HOSTS; h++)
				fprintf(out, "host h%d_%d_%d under rack%d_%d rate 25gbit delay 1us\n", p, r, h, p, r);
		}
	}
	CHECK(fclose(out) == 0);
	enum esp_status status = topology_parse(text, length, &topology, &err);
	CHECK_MSG(status == ESP_OK, "%s", err.text);
	free(text);
	return topology;
}

static void open_actor(struct actor *actor, const struct topology *topology, const uint32_t *host_of)
{
	*actor = (struct actor){.context = calloc(1, sizeof(*actor->context)), .group = calloc(1, sizeof(*actor->group)),
	                         .bandwidth = calloc(1, sizeof(*actor->bandwidth))};
	CHECK(actor->context && actor->group && actor->bandwidth);
	struct rank *context = actor->context;
	struct comm *group = actor->group;

	context->conf.autotune = CONF_AUTOTUNE_AUTO;
	context->lanes = 2;
	context->mod.bandwidth = actor->bandwidth;
	bandwidth_init(actor->bandwidth, context->lanes);
	CHECK(pthread_mutex_init(&context->lock, NULL) == 0 && pthread_mutex_init(&group->lock, NULL) == 0);
	group->context = context;
	group->tuner = &retune_tuner;
	group->net.lane_order = actor->bandwidth->lane_order;
	group->size = MEMBERS;
	group->net.layout = (struct layout){
		.members = MEMBERS, .hosts = MEMBERS, .host_of = host_of, .topology = topology, .place = topology->hosts,
		.chunk_bytes = PLAN_CACHE_CHUNK, .buffer_bytes = UINT64_C(32) << 20, .credits = 16, .lanes = context->lanes,
	};
}

static void close_actor(struct actor *actor)
{
	for (uint32_t i = 0; i < KINDS; i++)
		work_put(actor->prepared[i]);
	comm_retune_fini(actor->group);
	comm_plan_cache_fini(&actor->group->plans);
	pthread_mutex_destroy(&actor->group->lock);
	pthread_mutex_destroy(&actor->context->lock);
	free(actor->group);
	free(actor->context);
	free(actor->bandwidth);
}

static struct call describe(uint32_t kind, void *memory)
{
	static const enum plan_collective collectives[] = {PLAN_ALLREDUCE, PLAN_ALLREDUCE, PLAN_BROADCAST, PLAN_REDUCE};
	static const uint64_t sizes[] = {80 << 10, 256 << 10, 1 << 20};
	uint64_t bytes = sizes[kind / 4];
	struct call call = {
		.collective = collectives[kind % 4],
		.type = ESP_F32,
		.op = ESP_SUM,
		.count = bytes / 4,
		.in = memory,
		.out = memory,
		.planner = kind % 4 == 1 ? plan_planner_find("two-level") : NULL,
	};
	struct failure failure;

	CHECK(call_check(&call, 0, MEMBERS, &failure) == ESP_OK);
	return call;
}

static void prepare(struct actor *actor, uint32_t kind, void *memory)
{
	struct call call = describe(kind, memory);
	struct failure failure;

	work_put(actor->prepared[kind]);
	CHECK(work_make(actor->group, &call, &(struct work_options){0}, &actor->prepared[kind], &failure) == ESP_OK);
}

/* As it is done with what was measured: on all members, at the same call. */
static void install(struct actor *actor, const struct plan_masters *masters, bool by_masters)
{
	struct layout *layout = &actor->group->net.layout;

	layout->masters = masters;
	layout->masters_version++;
	layout->choice_version += by_masters != layout->by_masters;
	layout->by_masters = by_masters;
}

struct outcome {
	const char *planner;
	uint32_t groups;
	bool is_counted, has_masters;
};

static struct outcome launch(struct actor *actor, uint32_t kind)
{
	struct work *work = actor->prepared[kind];
	const struct layout *layout = &actor->group->net.layout;

	CHECK(comm_retune_before(actor->group, work) == ESP_OK);
	CHECK(!work_is_stale(work));
	const struct plan *plan = work->spans[0].planned->plan;
	struct outcome outcome = {
		plan_planner_name(plan->planner),
		plan->group_count,
		work->is_counted,
		layout->masters && plan->group_of && plan_masters_are_of(layout->masters, plan->group_of, MEMBERS),
	};
	pthread_mutex_lock(&actor->context->lock);
	comm_retune_landed(work);
	pthread_mutex_unlock(&actor->context->lock);
	return outcome;
}

static void history(struct rng *rng, const struct topology *topology, const uint32_t *host_of, void *memory)
{
	struct actor early, late;
	struct tuner tuner;
	struct error err;
	bool has_tuner = false;
	uint64_t counted = 0;

	open_actor(&early, topology, host_of);
	open_actor(&late, topology, host_of);
	for (uint32_t i = 0; i < KINDS; i++)
		prepare(&early, i, memory);
	for (uint32_t step = 0; step < 60 && counted < WINDOW; step++) {
		uint32_t kind = (uint32_t)rng_below(rng, KINDS);

		if (has_tuner && rng_chance(rng, 1, 4)) {
			bool by_masters = rng_chance(rng, 1, 2);

			install(&early, &tuner.masters, by_masters);
			install(&late, &tuner.masters, by_masters);
		}
		if (rng_chance(rng, 1, 3))
			prepare(&early, (uint32_t)rng_below(rng, KINDS), memory);
		prepare(&late, kind, memory);
		struct outcome one = launch(&early, kind), other = launch(&late, kind);
		const struct call *call = &late.prepared[kind]->call;
		bool is_rooted = call->collective == PLAN_BROADCAST || call->collective == PLAN_REDUCE;

		CHECK_MSG(one.planner == other.planner && one.groups == other.groups && one.is_counted == other.is_counted,
		          "step %u, kind %u: %s with %u groups, counted: %d; %s with %u groups, counted: %d", step, kind,
		          one.planner, one.groups, one.is_counted, other.planner, other.groups, other.is_counted);
		CHECK(!is_rooted || !one.is_counted);
		counted += one.is_counted ? call->block_bytes : 0;
		/* A slow host is spared, whatever groups would be the fastest without it. */
		if (late.group->net.layout.by_masters && call->collective == PLAN_ALLREDUCE && !call->planner &&
		    call->block_bytes > PLAN_CACHE_BY_MASTERS)
			CHECK(one.has_masters && one.is_counted);
		if (one.is_counted && !has_tuner) { /* masters are of the groups of the first call that counts */
			const struct plan *plan = early.prepared[kind]->spans[0].planned->plan;
			const uint32_t *group_of =
				plan->group_of
					? plan->group_of
					: comm_plan_cache_groups(&early.group->plans, &early.group->net.layout, call, call->block_bytes);

			CHECK(group_of && tuner_init(&tuner, group_of, MEMBERS, &err) == ESP_OK);
			has_tuner = true;
		}
	}
	close_actor(&early);
	close_actor(&late);
	if (has_tuner)
		tuner_fini(&tuner);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 300);
	struct topology *topology = make_topology();
	uint32_t host_of[MEMBERS];
	void *memory = calloc(1, 1 << 20);
	struct rng rng;

	CHECK(memory);
	for (uint32_t i = 0; i < MEMBERS; i++)
		host_of[i] = i;
	rng_init(&rng, seed);
	for (uint64_t i = 0; i < count; i++)
		history(&rng, topology, host_of, memory);
	free(memory);
	topology_close(topology);
	return 0;
}
