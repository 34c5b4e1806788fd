/* cost_test.c - costs of plans on racks, against values that can be worked out by hand, and on matrices. */
#include "tune/cost.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"

#define MBIT 1000000u
#define NODES_MOST 64u

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

struct stage {
	struct topology *topology;
	uint32_t place[NODES_MOST], group_of[NODES_MOST], order[NODES_MOST];
	struct tune_network network;
};

static void stage_open(struct stage *stage, uint32_t racks, uint32_t per_rack, double oversubscribe, bool interleaved)
{
	uint32_t nodes = racks * per_rack, at = 0;
	struct topology_spec spec = {
		.racks = racks, .hosts = nodes, .rate_bits = 8 * MBIT, .oversubscribe = oversubscribe, /* 1e6 bytes a second */
	};

	CHECK(topology_make(&spec, &stage->topology, NULL) == ESP_OK);
	CHECK(topology_place(stage->topology, nodes, interleaved, stage->place, NULL) == ESP_OK);
	CHECK(topology_groups(stage->topology, stage->place, nodes, stage->group_of, NULL) == ESP_OK);
	for (uint32_t g = 0; g < racks; g++) {
		for (uint32_t i = 0; i < nodes; i++) {
			if (stage->group_of[i] == g)
				stage->order[at++] = i;
		}
	}
	stage->network = (struct tune_network){.nodes = nodes, .topology = stage->topology, .place = stage->place};
}

static struct tune_load load_of(const struct stage *stage, const char *planner, bool ordered)
{
	struct tune_load load;
	struct error err;
	const struct planner *found = plan_planner_find(planner);

	struct plan_spec how = {
		.chunks = {.collective = PLAN_ALLREDUCE},
		.order = ordered ? stage->order : NULL,
		.group_of = plan_planner_needs_groups(found) ? stage->group_of : NULL,
	};
	CHECK_MSG(tune_load_planner(found, &how, &stage->network, &load, &err) == ESP_OK, "%s", err.text);
	return load;
}

/* Seconds for a byte at 1e6 bytes a second, as what each link has to carry says. */
static void racks(void)
{
	for (uint32_t racks = 2; racks <= 4; racks++) {
		for (uint32_t per_rack = 2; per_rack <= 4; per_rack++) {
			for (int interleaved = 0; interleaved < 2; interleaved++) {
				struct stage stage;
				double n = racks * per_rack, least = 2 * (n - 1) / n, over = 2 * per_rack, uplink = per_rack / over;

				stage_open(&stage, racks, per_rack, over, interleaved);
				struct tune_load flat = load_of(&stage, "flat", false), ring = load_of(&stage, "ring", true);
				struct tune_load lost = load_of(&stage, "ring", false), two = load_of(&stage, "two-level", false);

				/* All send their shares to all others, twice; the uplinks have half of a host's rate. */
				CHECK(is_near(flat.overlapped * 1e6, fmax(least, 2 * per_rack * (n - per_rack) / n / uplink)));
				CHECK(is_near(ring.overlapped * 1e6, least / uplink));
				CHECK(is_near(ring.apart, ring.overlapped)); /* the same in every round */
				if (interleaved)
					CHECK(is_near(lost.overlapped * 1e6, per_rack * least / uplink));
				CHECK(two.overlapped * 1e6 >= fmax(least, 2.0 * (racks - 1) / racks / uplink) * 0.999);
				CHECK(two.apart > two.overlapped);
				topology_close(stage.topology);
			}
		}
	}
}

/* Two racks of four, 4:1, whose masters divide evenly: what the hosts must carry is all. */
static void two_level_is_at_the_bound(void)
{
	struct stage stage;

	stage_open(&stage, 2, 4, 4, true);
	CHECK(is_near(load_of(&stage, "two-level", false).overlapped * 1e6, 1.75));
	CHECK(is_near(load_of(&stage, "halving-doubling", true).overlapped * 1e6, 1.75));
	CHECK(is_near(load_of(&stage, "flat", false).overlapped * 1e6, 4));
	topology_close(stage.topology);
}

/* On a matrix in which all are alike, a plan costs what its busiest node moves. */
static void matrices(struct rng *rng)
{
	for (uint32_t n = 2; n <= 20; n++) {
		double *bytes = calloc((size_t)n * n, sizeof(*bytes)), *latency = calloc((size_t)n * n, sizeof(*latency));
		uint32_t order[20];
		struct tune_network network = {.nodes = n, .seconds_per_byte = bytes, .latency = latency};
		struct tune_load flat, ring;
		struct error err;

		CHECK(bytes && latency);
		for (uint32_t i = 0; i < n * n; i++) {
			bool is_self = i / n == i % n;

			bytes[i] = is_self ? 0 : i % 3 ? 1e-6 : NAN; /* unknown values are like the rest of their row */
			latency[i] = is_self ? 0 : 1e-3;
		}
		for (uint32_t i = 0; i < n; i++)
			order[i] = i;
		for (uint32_t i = n; i > 1; i--) {
			uint32_t other = (uint32_t)rng_below(rng, i), kept = order[i - 1];

			order[i - 1] = order[other];
			order[other] = kept;
		}
		if (n > 3) { /* with fewer a row may be all unknown */
			struct plan_spec how = {.chunks = {.collective = PLAN_ALLREDUCE}};

			CHECK(tune_load_planner(plan_planner_find("flat"), &how, &network, &flat, &err) == ESP_OK);
			how.order = order;
			CHECK(tune_load_planner(plan_planner_find("ring"), &how, &network, &ring, &err) == ESP_OK);
			CHECK(is_near(flat.overlapped * 1e6, 2.0 * (n - 1) / n));
			CHECK(is_near(ring.overlapped * 1e6, 2.0 * (n - 1) / n));
			CHECK(is_near(ring.latency, 2 * (n - 1) * (1e-3 + TUNE_ROUND)));
			CHECK(is_near(flat.latency, 2 * (1e-3 + TUNE_ROUND)));
		}
		free(bytes);
		free(latency);
	}
}

/* A long call comes to what overlaps, a short one to rounds one after the other, and more bytes never take less. */
static void sizes(void)
{
	struct tune_load load = {.overlapped = 1e-6, .apart = 3e-6, .latency = 1e-3, .messages = 2, .wave = 8};
	double before = 0;

	CHECK(is_near(tune_seconds(&load, 8000, 1000), 8000 * 3e-6 + 1e-3 + 2 * 8 * TUNE_MESSAGE));
	CHECK(is_near(tune_seconds(&load, 80000, 1000), 80000 * (1e-6 + 2e-6 / 10) + 1e-3 + 2 * 80 * TUNE_MESSAGE));
	CHECK(is_near(tune_seconds(&load, 0, 1000), 1e-3 + 2 * TUNE_MESSAGE));
	load.rounds = 4;
	CHECK(is_near(tune_seconds(&load, 80000, 1000),
	              80000 * (1e-6 + 2e-6 * (0.1 + 2 * TUNE_LAG)) + 1e-3 + 2 * 80 * TUNE_MESSAGE));
	load.rounds = 30; /* one after the other, and no worse */
	CHECK(is_near(tune_seconds(&load, 80000, 1000), 80000 * 3e-6 + 1e-3 + 2 * 80 * TUNE_MESSAGE));
	load.rounds = 4;
	for (uint64_t bytes = 0; bytes < 200000; bytes += 997) {
		double seconds = tune_seconds(&load, bytes, 1000);

		CHECK(seconds >= before);
		before = seconds;
	}
}

int main(void)
{
	struct rng rng;

	rng_init(&rng, 7);
	racks();
	two_level_is_at_the_bound();
	matrices(&rng);
	sizes();
	return 0;
}
