/*
 * seeds_test.c - whole clusters, drawn from seeds, against a reference.
 *
 *     seeds_test [--seed FIRST] [--count N]
 *
 * Every seed is a cluster of 1 to 64 workers that runs one to six calls of any planner,
 * collective, type and operation under a drawn schedule; every call must complete on every
 * node with exactly the right elements. A failure prints the command that replays it.
 */
#include <errno.h> /* program_invocation_name */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cluster.h"

static void fail(const struct cluster *cluster, const struct cluster_call *call, uint64_t seed, const char *why)
{
	char text[256];

	cluster_describe(call, text, sizeof(text));
	fprintf(stderr, "seed %" PRIu64 ", call %td of %u: %s\n  %s\n  replay: %s --seed %" PRIu64 " --count 1\n",
	        seed, call - cluster->calls, cluster->call_count, why, text, program_invocation_name, seed);
	exit(1);
}

static void check_call(const struct cluster *cluster, const struct cluster_call *call, uint64_t seed)
{
	char why[160];

	for (uint32_t node = 0; node < call->plan->nodes; node++) {
		if (call->status[node] == ESP_OK)
			continue;
		snprintf(why, sizeof(why), "node %u ended with status %d", node, call->status[node]);
		fail(cluster, call, seed, why);
	}
	if (!cluster_matches(call, why, sizeof(why)))
		fail(cluster, call, seed, why);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 3000), calls = 0;

	for (uint64_t seed = first; seed - first < count; seed++) {
		struct cluster cluster;

		cluster_draw(&cluster, seed);
		cluster_run(&cluster);
		for (uint32_t i = 0; i < cluster.call_count; i++)
			check_call(&cluster, &cluster.calls[i], seed);
		calls += cluster.call_count;
		sim_cluster_close(&cluster);
	}
	printf("%" PRIu64 " clusters, %" PRIu64 " calls, from seed %" PRIu64 "\n", count, calls, first);
	return 0;
}
