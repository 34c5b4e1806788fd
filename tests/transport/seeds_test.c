/*
 * seeds_test.c - the suite that every transport passes: random calls over real connections.
 *
 *     transport_seeds_test [--seed FIRST] [--count N]
 *
 * Every seed is a mesh of 1 to 8 workers that runs one to six calls at once over each kind of
 * connection. Every call must complete on every node with exactly the right elements; in
 * every second mesh a node dies on the way, and then all calls must end, either right or with
 * an error that names it, or one that fails because of it; whatever a call gives back is
 * overwritten at once, which nobody who succeeds may notice. Threads are scheduled as the machine likes, so a seed
 * replays what was drawn and not what happened.
 */
#include <stdio.h>

#include "base/check.h"
#include "mesh.h"

static const struct mesh_kind *const kinds[] = {&mesh_unix, &mesh_ipv4, &mesh_ipv6, &mesh_shm, &mesh_moving_unix, &mesh_moving_ipv4};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct totals {
	uint64_t meshes, calls, completed, failed, idle, moved, replaced;
};

static void fail(const struct mesh *mesh, const struct cluster_call *call, uint64_t seed, const char *why)
{
	char text[256];

	cluster_describe(call, text, sizeof(text));
	check_fail(__FILE__, __LINE__, "%s: %s\n  %s\n  replay: transport_seeds_test --seed %" PRIu64 " --count 1",
	           mesh->kind->name, why, text, seed);
}

/* Does every lane of the node know whose fault it is? */
static void check_culprit(struct mesh *mesh, const struct cluster_call *call, uint32_t node, uint64_t seed)
{
	uint32_t victim = mesh->cluster.spec.victim;
	char why[128];

	if (victim == PLAN_NONE || (call->status[node] != ESP_EPEER && call->status[node] != ESP_ELINK)) {
		snprintf(why, sizeof(why), "node %u ended with status %d", node, call->status[node]);
		fail(mesh, call, seed, why);
	}
	for (uint32_t lane = 0; lane < mesh->cluster.spec.lanes; lane++) {
		struct exec_failure failure = mesh->lanes[node * mesh->cluster.spec.lanes + lane].failure;

		/* The victim, or one that took back what it had offered because of it and was seen first. */
		if (failure.status != ESP_OK && (failure.node == PLAN_NONE || failure.node == node))
			fail(mesh, call, seed, "the error does not name a node that was lost");
	}
}

static void check_call(struct mesh *mesh, struct cluster_call *call, uint64_t seed, struct totals *totals)
{
	uint32_t victim = mesh->cluster.spec.victim;
	char why[160];

	for (uint32_t node = 0; node < call->plan->nodes; node++) {
		if (node == victim) {
			call->status[node] = ESP_EPEER; /* whatever it has is gone with it */
		} else if (call->status[node] == ESP_OK) {
			totals->completed++;
		} else {
			totals->failed++;
			check_culprit(mesh, call, node, seed);
		}
	}
	if (!cluster_matches(call, why, sizeof(why)))
		fail(mesh, call, seed, why);
}

static void run_seed(uint64_t seed, const struct mesh_kind *kind, struct totals *totals)
{
	struct mesh mesh;
	struct rng rng;

	mesh_draw(&mesh, seed, kind);
	rng_init(&rng, ~seed);
	if (seed % 2 == 0) {
		mesh.cluster.spec.victim = (uint32_t)rng_below(&rng, mesh.cluster.spec.nodes);
		mesh.cluster.spec.scribble = true;
		mesh.victim_after = rng_below(&rng, 1u << rng_below(&rng, 10));
	}
	mesh_run(&mesh);
	for (uint32_t i = 0; i < mesh.cluster.call_count; i++)
		check_call(&mesh, &mesh.cluster.calls[i], seed, totals);
	for (uint32_t i = 0; i < mesh.lane_count; i++) {
		totals->idle += mesh.lanes[i].idle;
		totals->moved += mesh.lanes[i].moved;
		totals->replaced += mesh.lanes[i].replaced;
	}
	totals->meshes++;
	totals->calls += mesh.cluster.call_count;
	mesh_close(&mesh);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 150);
	struct totals totals = {0};

	for (uint64_t seed = first; seed - first < count; seed++) {
		for (size_t k = 0; k < KINDS; k++) {
			if (kinds[k]->works())
				run_seed(seed, kinds[k], &totals);
		}
	}
	printf("%" PRIu64 " meshes, %" PRIu64 " calls: completed on %" PRIu64 " nodes, ended with the loss on %" PRIu64
	       "; %" PRIu64 " polls moved something, %" PRIu64 " did not; %" PRIu64 " ends of connections were replaced\n",
	       totals.meshes, totals.calls, totals.completed, totals.failed, totals.moved, totals.idle, totals.replaced);
	CHECK(count < 50 || (totals.completed > 0 && totals.failed > 0 && totals.replaced > 0));
	return 0;
}
