#include "cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "plan/check.h"

/* ---- the cluster ---- */

struct lane *cluster_lane(const struct cluster *cluster, uint32_t node, uint32_t lane)
{
	return cluster->lanes[node * cluster->spec.lanes + lane];
}

static struct cluster_group *add_group(struct cluster *cluster, uint16_t channel, const uint32_t *ranks, uint32_t count)
{
	struct cluster_group *group = &cluster->groups[cluster->group_count++];

	CHECK(cluster->group_count <= CLUSTER_GROUPS_MOST);
	*group = (struct cluster_group){.channel = channel, .count = count};
	group->members = calloc(count, sizeof(*group->members));
	CHECK(group->members);
	if (ranks) {
		group->ranks = malloc(count * sizeof(uint32_t));
		CHECK(group->ranks);
		memcpy(group->ranks, ranks, count * sizeof(uint32_t));
	}
	return group;
}

void sim_cluster_open(struct cluster *cluster, const struct cluster_spec *spec)
{
	*cluster = (struct cluster){.spec = *spec};
	rng_init(&cluster->rng, spec->seed);
	struct inproc_config config = {
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
		.peers = spec->nodes,
		.ports = 1,
		.exec = {
			.credits = spec->credits,
			.active_chunks = spec->active_chunks,
			.slot_bytes = spec->slot_bytes,
			.first_index = spec->first_index,
			.dry = spec->dry,
		},
	};
	CHECK(inproc_open(&config, &cluster->loop, NULL) == ESP_OK);
	cluster->lanes = calloc(spec->nodes * spec->lanes, sizeof(struct lane *));
	for (uint32_t i = 0; i < spec->nodes * spec->lanes; i++) {
		CHECK(lane_open(&lane_config, &cluster->lanes[i], NULL) == ESP_OK);
		inproc_attach(cluster->loop, i / spec->lanes, i % spec->lanes, &lane_user, lane_port(cluster->lanes[i], 0));
	}
	for (uint32_t i = 0; i < spec->streams; i++) {
		add_group(cluster, (uint16_t)i, NULL, spec->nodes);
		for (uint32_t place = 0; place < spec->nodes; place++)
			CHECK(cluster_member_open(cluster, &cluster->groups[i], place));
	}
}

uint32_t cluster_add_group(struct cluster *cluster, uint16_t channel, const uint32_t *ranks, uint32_t count,
                           uint64_t open_after_ns)
{
	struct cluster_group *group = add_group(cluster, channel, ranks, count);

	group->comes_and_goes = true;
	group->open_after_ns = open_after_ns;
	return (uint32_t)(group - cluster->groups);
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

void sim_cluster_close(struct cluster *cluster)
{
	inproc_close(cluster->loop);
	for (uint32_t i = 0; i < cluster->spec.nodes * cluster->spec.lanes; i++)
		lane_close(cluster->lanes[i]);
	free(cluster->lanes);
	for (uint32_t i = 0; i < cluster->call_count; i++)
		call_close(&cluster->calls[i]);
	for (uint32_t i = 0; i < cluster->group_count; i++)
		cluster_group_close(&cluster->groups[i]);
}

/* ---- calls ---- */

struct cluster_call *cluster_add(struct cluster *cluster, struct plan *plan, bool owns_plan, enum esp_type type,
                                 enum esp_op op, double factor, enum cluster_fill fill, uint64_t data_seed)
{
	struct plan_report report;
	struct error err;

	CHECK(cluster->call_count < CLUSTER_CALLS_MOST);
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
		.group = cluster->spec.streams ? cluster->call_count % cluster->spec.streams : 0,
		.odd = PLAN_NONE,
		.lanes_left = calloc(plan->nodes, sizeof(uint32_t)),
		.status = calloc(plan->nodes, sizeof(enum esp_status)),
		.lane_of = malloc(plan->chunks.chunk_count + 1),
	};
	cluster->call_count++;
	CHECK(lanes_assign(plan, cluster->spec.lanes, NULL, call->lane_of) == ESP_OK);
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

static void start_fires(void *context)
{
	struct start *start = context;
	struct cluster *cluster = start->cluster;

	if (!cluster_is_dead(cluster, start->node) && start->node < cluster->calls[start->call].plan->nodes)
		sim_cluster_start(cluster, &cluster->calls[start->call], start->node);
	/* The next call is started without waiting for this one. */
	if (++start->call < cluster->call_count)
		inproc_after(cluster->loop, rng_below(&cluster->rng, cluster->spec.start_spread_ns + 1), start_fires, start);
}

static void victim_dies(void *context)
{
	struct cluster *cluster = context;

	inproc_kill(cluster->loop, cluster->spec.victim);
}

static void member_aborts(void *context)
{
	struct cluster *cluster = context;
	struct cluster_group *group = &cluster->groups[cluster->spec.abort_group];
	uint32_t rank = cluster_rank(group, cluster->spec.abort_place);

	if (!cluster_is_dead(cluster, rank))
		lane_fail_stream(cluster_lane(cluster, rank, 0), group->channel, PLAN_NONE, ESP_EABORTED);
}

void cluster_run(struct cluster *cluster)
{
	const struct cluster_spec *spec = &cluster->spec;
	struct start *starts = calloc(spec->nodes, sizeof(*starts));

	/* The scenario's own groups, each node for itself. */
	for (uint32_t node = 0; spec->streams > 0 && node < spec->nodes; node++) {
		starts[node] = (struct start){cluster, node, 0};
		inproc_after(cluster->loop, rng_below(&cluster->rng, spec->start_spread_ns + 1), start_fires, &starts[node]);
	}
	cluster_groups_run(cluster);
	if (spec->victim != PLAN_NONE)
		inproc_after(cluster->loop, spec->victim_after_ns, victim_dies, cluster);
	bool aborts = spec->streams == 0 && spec->abort_group != PLAN_NONE;
	if (aborts)
		inproc_after(cluster->loop, spec->abort_after_ns, member_aborts, cluster);
	bool may_change = spec->victim != PLAN_NONE || spec->corrupt_one_in > 0 || spec->streams == 0;
	while (inproc_turn(cluster->loop)) {
		for (uint32_t node = 0; may_change && node < spec->nodes; node++)
			cluster_collect(cluster, node);
	}
	for (uint32_t node = 0; node < spec->nodes; node++)
		cluster_collect(cluster, node);
	free(starts);
}
