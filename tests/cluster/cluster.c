#include "cluster.h"

#include <stdlib.h>

#include "base/check.h"
#include "plan/check.h"

/* ---- the cluster ---- */

struct lane *cluster_lane(const struct cluster *cluster, uint32_t node, uint32_t lane)
{
	return cluster->lanes[node * cluster->spec.lanes + lane];
}

void cluster_open(struct cluster *cluster, const struct cluster_spec *spec)
{
	*cluster = (struct cluster){.spec = *spec};
	rng_init(&cluster->rng, spec->seed);
	struct loop_config config = {
		.seed = rng_next(&cluster->rng),
		.nodes = spec->nodes,
		.lanes = spec->lanes,
		.delay_ns = spec->delay_ns,
		.fragment_most = spec->fragment_most,
		.flight_most = spec->flight_most,
		.carry = spec->carry,
		.checked = spec->checked,
		.corrupt_one_in = spec->corrupt_one_in,
	};
	struct lane_config lane_config = {
		.streams = spec->streams,
		.exec = {
			.credits = spec->credits,
			.active_chunks = spec->active_chunks,
			.slot_bytes = spec->slot_bytes,
			.first_index = spec->first_index,
			.dry = spec->dry,
		},
	};
	CHECK(loop_open(&config, &cluster->loop, NULL) == ESP_OK);
	cluster->lanes = calloc(spec->nodes * spec->lanes, sizeof(struct lane *));
	for (uint32_t i = 0; i < spec->nodes * spec->lanes; i++) {
		lane_config.exec.node = i / spec->lanes;
		CHECK(lane_open(&lane_config, &cluster->lanes[i], NULL) == ESP_OK);
		loop_attach(cluster->loop, i / spec->lanes, i % spec->lanes, &lane_user, cluster->lanes[i]);
	}
}

static void call_close(struct cluster_call *call)
{
	cluster_free(call);
	free(call->lanes_left);
	free(call->status);
	free(call->lane_of);
	if (call->owns_plan)
		plan_close(call->plan);
}

void cluster_close(struct cluster *cluster)
{
	loop_close(cluster->loop);
	for (uint32_t i = 0; i < cluster->spec.nodes * cluster->spec.lanes; i++)
		lane_close(cluster->lanes[i]);
	free(cluster->lanes);
	for (uint32_t i = 0; i < cluster->call_count; i++)
		call_close(&cluster->calls[i]);
}

/* ---- calls ---- */

struct cluster_call *cluster_add(struct cluster *cluster, struct plan *plan, bool owns_plan, enum esp_type type,
                                 enum esp_op op, double factor, enum cluster_fill fill, uint64_t data_seed)
{
	struct plan_report report;
	struct error err;

	CHECK(cluster->call_count < CLUSTER_CALLS);
	CHECK_MSG(plan_check(plan, NULL, &report, NULL, &err) == ESP_OK, "%s", err.text);
	struct cluster_call *call = &cluster->calls[cluster->call_count];

	*call = (struct cluster_call){
		.plan = plan,
		.owns_plan = owns_plan,
		.type = type,
		.op = op,
		.factor = factor,
		.fill = fill,
		.data_seed = data_seed,
		.stream = cluster->call_count % cluster->spec.streams,
		.lanes_left = calloc(plan->nodes, sizeof(uint32_t)),
		.status = calloc(plan->nodes, sizeof(enum esp_status)),
		.lane_of = malloc(plan->chunks.chunk_count + 1),
	};
	cluster->call_count++;
	CHECK(lanes_assign(plan, cluster->spec.lanes, call->lane_of) == ESP_OK);
	if (!cluster->spec.dry)
		cluster_fill(call);
	for (uint32_t node = 0; node < plan->nodes; node++) {
		call->status[node] = ESP_PENDING;
		call->lanes_left[node] = cluster->spec.lanes;
	}
	return call;
}

/* ---- running ---- */

/* A node starts a call: on all its lanes, in the order of calls on each stream. */
struct start {
	struct cluster *cluster;
	uint32_t node, call;
};

static void start_call(struct cluster *cluster, struct cluster_call *call, uint32_t node)
{
	const struct cluster_buffers *buffers =
		call->buffers && node < call->plan->workers ? &call->buffers[node] : NULL;

	for (uint32_t lane = 0; lane < cluster->spec.lanes; lane++) {
		struct exec_call exec_call = {
			.plan = call->plan,
			.in = buffers ? buffers->in : NULL,
			.out = buffers ? buffers->out : NULL,
			.type = call->type,
			.op = call->op,
			.factor = call->factor,
			.lane_of = call->lane_of,
			.lane = (uint8_t)lane,
			.cookie = call,
		};
		struct error err;
		enum esp_status status = lane_start(cluster_lane(cluster, node, lane), call->stream, &exec_call, &err);

		if (status != ESP_OK && cluster->spec.victim == PLAN_NONE && cluster->spec.corrupt_one_in == 0)
			check_fail(__FILE__, __LINE__, "start: %s", err.text);
		if (status != ESP_OK)
			call->status[node] = status;
		loop_poke(cluster->loop, node, lane);
	}
}

/* What fails on one lane of a node fails on all: a call that ended on one is not to be read by another. */
static void fail_together(struct cluster *cluster, uint32_t node)
{
	struct exec_failure failure = {.status = ESP_OK};

	for (uint32_t lane = 0; failure.status == ESP_OK && lane < cluster->spec.lanes; lane++)
		failure = lane_failure(cluster_lane(cluster, node, lane));
	for (uint32_t lane = 0; failure.status != ESP_OK && lane < cluster->spec.lanes; lane++) {
		lane_fail(cluster_lane(cluster, node, lane), failure.node, failure.status);
		loop_poke(cluster->loop, node, lane);
	}
}

static void collect(struct cluster *cluster, uint32_t node)
{
	struct exec_done done;

	fail_together(cluster, node);
	for (uint32_t lane = 0; lane < cluster->spec.lanes; lane++) {
		while (lane_take_done(cluster_lane(cluster, node, lane), &done)) {
			struct cluster_call *call = done.cookie;

			if (done.status != ESP_OK)
				call->status[node] = done.status;
			else if (--call->lanes_left[node] == 0 && call->status[node] == ESP_PENDING)
				call->status[node] = ESP_OK;
			if (cluster->spec.scribble && call->status[node] != ESP_PENDING)
				cluster_scribble(call, node);
		}
	}
}

static void start_fires(void *context)
{
	struct start *start = context;
	struct cluster *cluster = start->cluster;

	bool is_dead = cluster->spec.victim == start->node && loop_now(cluster->loop) >= cluster->spec.victim_after_ns;

	if (!is_dead && start->node < cluster->calls[start->call].plan->nodes)
		start_call(cluster, &cluster->calls[start->call], start->node);
	/* The next call is started without waiting for this one. */
	if (++start->call < cluster->call_count)
		loop_after(cluster->loop, rng_below(&cluster->rng, cluster->spec.start_spread_ns + 1), start_fires, start);
}

static void victim_dies(void *context)
{
	struct cluster *cluster = context;

	loop_kill(cluster->loop, cluster->spec.victim);
}

void cluster_run(struct cluster *cluster)
{
	uint32_t nodes = cluster->spec.nodes;
	struct start *starts = calloc(nodes, sizeof(*starts));

	for (uint32_t node = 0; node < nodes; node++) {
		starts[node] = (struct start){cluster, node, 0};
		loop_after(cluster->loop, rng_below(&cluster->rng, cluster->spec.start_spread_ns + 1), start_fires,
		           &starts[node]);
	}
	if (cluster->spec.victim != PLAN_NONE)
		loop_after(cluster->loop, cluster->spec.victim_after_ns, victim_dies, cluster);
	bool may_fail = cluster->spec.victim != PLAN_NONE || cluster->spec.corrupt_one_in > 0;
	while (loop_turn(cluster->loop)) {
		for (uint32_t node = 0; may_fail && node < nodes; node++)
			collect(cluster, node);
	}
	for (uint32_t node = 0; node < nodes; node++)
		collect(cluster, node);
	free(starts);
}
