/*
 * mesh_draw.c - meshes drawn from a seed: as tests/cluster draws its clusters, but smaller, since
 * every lane is a thread, and with larger messages, since sockets cut them only then.
 */
#include "base/check.h"
#include "math/math.h"
#include "mesh.h"

static uint32_t pick(struct rng *rng, const uint32_t *from, uint32_t count)
{
	return from[rng_below(rng, count)];
}

static const struct planner *draw_planner(struct rng *rng)
{
	unsigned count = 0;

	while (plan_planner(count))
		count++;
	return plan_planner((unsigned)rng_below(rng, count));
}

static void draw_arithmetic(struct rng *rng, bool reduces, enum esp_type *type, enum esp_op *op)
{
	do {
		*type = (enum esp_type)rng_below(rng, ESP_TYPE_COUNT);
		*op = (enum esp_op)rng_below(rng, ESP_OP_COUNT);
	} while ((reduces && !math_op_defined(*type, *op)) || math_finish_needed(*op));
	if (!reduces)
		*op = ESP_SUM;
}

/* An allreduce large enough that no socket takes a message whole. */
static struct plan *draw_large(struct rng *rng, const struct planner *planner, uint32_t workers, uint32_t element_bytes)
{
	uint32_t groups[64];
	struct plan *plan;
	struct error err;

	for (uint32_t i = 0; i < workers; i++)
		groups[i] = i * 2 / workers;
	struct plan_spec spec = {
		.chunks = {
			.collective = PLAN_ALLREDUCE,
			.workers = workers,
			.bytes = element_bytes * (1 + rng_below(rng, 100000 / element_bytes)),
			.chunk_bytes = element_bytes * (1 + rng_below(rng, 60000 / element_bytes)),
			.align = element_bytes,
		},
		.group_of = groups,
	};
	CHECK_MSG(plan_open(planner, &spec, &plan, &err) == ESP_OK, "plan: %s", err.text);
	return plan;
}

static void draw_call(struct cluster *cluster, struct rng *rng, uint32_t workers)
{
	bool large = rng_chance(rng, 1, 3);
	enum plan_collective collective =
		large ? PLAN_ALLREDUCE : (enum plan_collective)rng_below(rng, PLAN_COLLECTIVE_COUNT);
	const struct planner *planner = draw_planner(rng);
	enum esp_type type;
	enum esp_op op;

	draw_arithmetic(rng, plan_collective_reduces(collective), &type, &op);
	uint32_t bytes = (uint32_t)math_type_bytes(type);
	struct plan *plan = large ? draw_large(rng, planner, workers, bytes)
	                          : cluster_draw_plan(rng, planner, collective, workers, bytes);
	if (plan->nodes > cluster->spec.nodes)
		cluster->spec.nodes = plan->nodes;
	cluster_add(cluster, plan, true, type, op, 1, FILL_SMALL, rng_next(rng));
}

void mesh_draw(struct mesh *mesh, uint64_t seed, const struct mesh_kind *kind)
{
	static const uint32_t credits[] = {1, 2, 4, 16, 64}, active[] = {1, 2, 4, 64};
	/* 1: whatever the kernel's least is, a few kilobytes. */
	static const uint32_t buffers[] = {1, 1, 16384, 0};
	static const uint32_t firsts[] = {0, 0, UINT32_MAX - 3, INT32_MAX - 2u};
	struct rng rng;

	rng_init(&rng, seed);
	uint32_t workers = 1 + (uint32_t)rng_below(&rng, rng_chance(&rng, 1, 8) ? 8 : 5);
	*mesh = (struct mesh){.kind = kind};
	mesh->cluster.spec = (struct cluster_spec){
		.seed = rng_next(&rng),
		.nodes = workers,
		.lanes = 1 + (uint32_t)rng_below(&rng, 2),
		.streams = 1 + (uint32_t)rng_below(&rng, 3),
		.credits = pick(&rng, credits, 5),
		.active_chunks = pick(&rng, active, 4),
		.slot_bytes = 1u << 20,
		.first_index = pick(&rng, firsts, 4),
		.victim = PLAN_NONE,
	};
	mesh->socket_buffer = pick(&rng, buffers, 4);
	mesh->doubles = rng_chance(&rng, 1, 2);
	for (uint64_t calls = 1 + rng_below(&rng, CLUSTER_CALLS); calls > 0; calls--)
		draw_call(&mesh->cluster, &rng, workers);
}
