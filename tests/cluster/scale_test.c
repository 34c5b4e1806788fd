/*
 * scale_test.c - 1,024 nodes in one process, every planner; 128 for the one whose messages
 * are as many as pairs of nodes.
 */
#include <stdio.h>

#include "base/check.h"
#include "cluster.h"

#define NODES 1024u

static void run_planner(const struct planner *planner)
{
	static uint32_t group_of[NODES];
	uint32_t nodes = strcmp(plan_planner_name(planner), "exchange") == 0 ? NODES / 8 : NODES;
	struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = nodes, .bytes = 1024, .chunk_bytes = 128, .align = 4},
		.group_of = group_of,
	};
	struct cluster_spec cluster_spec = {
		.seed = 1,
		.nodes = nodes,
		.lanes = 1,
		.streams = 1,
		.credits = 4,
		.active_chunks = 8,
		.slot_bytes = 128,
		.delay_ns = 10000,
		.start_spread_ns = 10000,
		.carry = INPROC_MIXED,
		.victim = PLAN_NONE,
	};
	struct cluster cluster;
	struct plan *plan;
	char why[160];

	for (uint32_t i = 0; i < nodes; i++)
		group_of[i] = i % 32;
	CHECK(plan_open(planner, &spec, &plan, NULL) == ESP_OK);
	cluster_spec.nodes = plan->nodes; /* with hubs and switches */
	sim_cluster_open(&cluster, &cluster_spec);
	struct cluster_call *call = cluster_add(&cluster, plan, true, ESP_I32, ESP_SUM, 0, FILL_SMALL, 7);
	cluster_run(&cluster);
	for (uint32_t node = 0; node < nodes; node++)
		CHECK_MSG(call->status[node] == ESP_OK, "%s: node %u ended with status %d", plan_planner_name(planner), node,
		          call->status[node]);
	CHECK_MSG(cluster_matches(call, why, sizeof(why)), "%s: %s", plan_planner_name(planner), why);
	printf("%s: %" PRIu64 " events\n", plan_planner_name(planner), inproc_events(cluster.loop));
	sim_cluster_close(&cluster);
}

int main(void)
{
	for (unsigned i = 0; plan_planner(i); i++)
		run_planner(plan_planner(i));
	return 0;
}
