/*
 * loss_test.c - a node is lost at a random moment: nobody hangs, nobody gets a wrong sum.
 *
 *     loss_test [--seed FIRST] [--count N]
 *
 * Every call of every other node ends, with the right result or with an error that names the
 * node that was lost, or one that took back what it had offered because of it. As soon as a call has
 * ended on a node, what it gives back is overwritten: nobody who succeeds sees that.
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

static void check_node(const struct cluster *cluster, const struct cluster_call *call, uint32_t node, uint64_t seed,
                       uint64_t counts[3])
{
	enum esp_status status = call->status[node];
	char why[128];

	counts[status != ESP_OK]++;
	if (status == ESP_OK)
		return;
	snprintf(why, sizeof(why), "node %u ended with status %d", node, status);
	if (status != ESP_EPEER)
		fail(call, seed, why);
	const struct exec_failure *failure = &cluster->groups[call->group].members[node].failure;
	/* Whoever reads what another has offered may first see that this one, which knows of the loss, took it back. */
	if (failure->status != ESP_EPEER || failure->node >= cluster->spec.nodes || failure->node == node) {
		snprintf(why, sizeof(why), "node %u: the error (status %d) names %d, not a node that was lost", node,
		         failure->status, (int)failure->node);
		fail(call, seed, why);
	}
	counts[2] += failure->node == cluster->spec.victim;
}

static void run_seed(uint64_t seed, uint64_t counts[3])
{
	struct cluster cluster;
	struct rng rng;
	char why[160];

	rng_init(&rng, ~seed);
	cluster_draw(&cluster, seed);
	cluster.spec.victim = (uint32_t)rng_below(&rng, cluster.calls[0].plan->workers);
	cluster.spec.victim_after_ns = rng_below(&rng, 2 * (cluster.spec.start_spread_ns + cluster.spec.delay_ns) + 2);
	cluster.spec.scribble = true;
	cluster_run(&cluster);
	for (uint32_t i = 0; i < cluster.call_count; i++) {
		struct cluster_call *call = &cluster.calls[i];

		for (uint32_t node = 0; node < call->plan->nodes; node++) {
			if (node != cluster.spec.victim)
				check_node(&cluster, call, node, seed, counts);
		}
		call->status[cluster.spec.victim] = ESP_EPEER; /* whatever it has is gone with it */
		/* Those that failed may hold anything; their guards still hold, and inputs are unchanged. */
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
	printf("%" PRIu64 " clusters: %" PRIu64 " calls of nodes completed, %" PRIu64 " ended with the loss\n", count,
	       counts[0], counts[1]);
	CHECK(count < 100 || (counts[0] > 0 && counts[1] > 0 && counts[2] > counts[1] / 2));
	return 0;
}
