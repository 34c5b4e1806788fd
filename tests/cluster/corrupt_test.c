/*
 * corrupt_test.c - bits turn over on the way: every call is right, or it fails saying so.
 *
 *     corrupt_test [--seed FIRST] [--count N]
 */
#include <errno.h> /* program_invocation_name */
#include <stdio.h>

#include "base/check.h"
#include "cluster.h"

static void fail(const struct cluster_call *call, uint64_t seed, const char *why)
{
	char text[256];

	cluster_describe(call, text, sizeof(text));
	check_fail(__FILE__, __LINE__, "%s\n  %s\n  replay: %s --seed %" PRIu64 " --count 1", why, text,
	           program_invocation_name, seed);
}

/* counts: calls of nodes that completed, that met the corruption or heard of it, that saw a node go because of it. */
static void run_seed(uint64_t seed, uint64_t counts[3])
{
	struct cluster cluster;
	char why[160];

	cluster_draw_with(&cluster, seed, 1 + (uint32_t)(seed % 300));
	cluster_run(&cluster);
	for (uint32_t i = 0; i < cluster.call_count; i++) {
		struct cluster_call *call = &cluster.calls[i];

		for (uint32_t node = 0; node < call->plan->nodes; node++) {
			enum esp_status status = call->status[node];

			counts[status == ESP_OK ? 0 : status == ESP_ECORRUPT ? 1 : 2]++;
			if (status == ESP_PENDING)
				fail(call, seed, "a node waits in vain");
			if (status != ESP_OK && status != ESP_ECORRUPT && status != ESP_EPEER)
				fail(call, seed, "a node ended with another error");
		}
		if (!cluster_matches(call, why, sizeof(why)))
			fail(call, seed, why);
	}
	sim_cluster_close(&cluster);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 1500);
	uint64_t counts[3] = {0};

	for (uint64_t seed = first; seed - first < count; seed++)
		run_seed(seed, counts);
	printf("%" PRIu64 " clusters: %" PRIu64 " calls of nodes completed, %" PRIu64 " failed for a turned bit, %" PRIu64
	       " for a connection that was closed because of one\n",
	       count, counts[0], counts[1], counts[2]);
	CHECK(count < 100 || (counts[0] > 0 && counts[1] > 0));
	return 0;
}
