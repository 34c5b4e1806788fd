/*
 * planning_bench.c - what one rank of many spends on plans, in time of this process's own: the menu of ways, Quicktune and
 * Finetune, and a plan with new masters.
 *
 * planning_bench [RANKS ...]: without, 64, 512 and 1024 ranks, in racks of 16 with uplinks of a quarter. A rank walks its rows of a plan of
 * 100 MiB, as the executor does between two iterations when masters have moved.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine/lane.h"
#include "tune/choose.h"
#include "tune/tuner.h"

#define RACK 16u
#define BYTES (UINT64_C(100) << 20)
#define CHUNK (UINT64_C(64) << 10)
#define LANES 2u
#define WINDOWS 12u

static double user_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void must(enum esp_status status, const struct error *err)
{
	if (status == ESP_OK)
		return;
	fprintf(stderr, "planning_bench: %s\n", err->text);
	exit(1);
}

static uint64_t chunk_of(void *context, const struct tune_way *way)
{
	(void)context, (void)way;
	return CHUNK;
}

/* Opens the menu and chooses once. */
static double time_menu(const struct tune_network *network, uint32_t *out_ways)
{
	struct error err;
	struct tune_menu *menu;
	double start = user_seconds();

	must(tune_menu_open(network, PLAN_ALLREDUCE, &menu, &err), &err);
	(void)tune_choose(menu, (struct tune_wish){0}, BYTES, chunk_of, NULL, NULL);
	double taken = user_seconds() - start;
	*out_ways = menu->count;
	tune_menu_close(menu);
	return taken;
}

/* Windows in which the last node has 40 % of its rate from the fourth on: the longest step, and the masters after all of them. */
static double time_tuner(struct tuner *tuner, uint32_t ranks)
{
	struct tune_node *nodes = calloc(ranks, sizeof(*nodes));
	struct tune_report report;
	double longest = 0;

	if (!nodes)
		exit(1);
	for (uint32_t window = 0; window < WINDOWS; window++) {
		uint64_t time = 0;

		for (uint32_t i = 0; i < ranks; i++) {
			uint64_t bytes = plan_masters_load(&tuner->masters, i) * 100000, rate = 1000000000;

			rate = window > 3 && i == ranks - 1 ? rate * 4 / 10 : rate;
			nodes[i] = (struct tune_node){.sent_bytes = bytes, .received_bytes = bytes, .send_rate = rate, .receive_rate = rate,
			                              .cross_rate = rate / 2, .rtt_ns = 200000};
			time = bytes * 1000 / (rate / 1000000) > time ? bytes * 1000 / (rate / 1000000) : time;
		}
		for (uint32_t i = 0; i < ranks; i++)
			nodes[i].time_ns = time;
		const struct tune_sample sample = {.nodes = ranks, .at = nodes};
		double start = user_seconds();
		(void)tuner_step(tuner, &sample, &report);
		double taken = user_seconds() - start;
		longest = taken > longest ? taken : longest;
	}
	free(nodes);
	return longest;
}

static double time_plan(const uint32_t *group_of, const struct plan_masters *masters, uint32_t ranks)
{
	struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = ranks, .bytes = BYTES, .chunk_bytes = CHUNK, .align = 4},
		.in_place = true,
		.group_of = group_of,
		.masters = masters,
	};
	struct plan_row row = {0};
	struct plan *plan;
	struct error err;
	double start = user_seconds();

	must(plan_open(plan_planner_find("two-level"), &spec, &plan, &err), &err);
	uint8_t *lane_of = malloc(plan->chunks.chunk_count);
	if (!lane_of || lanes_assign(plan, LANES, NULL, lane_of) != ESP_OK)
		exit(1);
	for (uint64_t chunk = 0; chunk < plan->chunks.chunk_count; chunk++) {
		if (plan_row(plan, ranks - 1, chunk, &row) != ESP_OK)
			exit(1);
	}
	double taken = user_seconds() - start;
	plan_row_fini(&row);
	plan_close(plan);
	free(lane_of);
	return taken;
}

static void measure(uint32_t ranks)
{
	const struct topology_spec spec = {.racks = (ranks + RACK - 1) / RACK, .hosts = ranks, .rate_bits = 10000000000, .oversubscribe = 4};
	uint32_t *place = calloc(ranks, sizeof(*place)), *group_of = calloc(ranks, sizeof(*group_of)), ways;
	struct topology *topology;
	struct tuner tuner;
	struct error err;

	if (!place || !group_of)
		exit(1);
	must(topology_make(&spec, &topology, &err), &err);
	must(topology_place(topology, ranks, false, place, &err), &err);
	for (uint32_t i = 0; i < ranks; i++)
		group_of[i] = i / RACK;
	const struct tune_network network = {.nodes = ranks, .topology = topology, .place = place};
	double menu = time_menu(&network, &ways);
	must(tuner_init(&tuner, group_of, ranks, &err), &err);
	double step = time_tuner(&tuner, ranks), plan = time_plan(group_of, &tuner.masters, ranks);
	printf("%6u %6u %10.3f %12.3f %10.3f\n", ranks, ways, menu * 1e3, step * 1e3, plan * 1e3);
	fflush(stdout);
	tuner_fini(&tuner);
	topology_close(topology);
	free(place);
	free(group_of);
}

int main(int argc, char **argv)
{
	static const uint32_t usual[] = {64, 512, 1024};

	printf("%6s %6s %10s %12s %10s\n", "ranks", "ways", "menu ms", "longest step", "plan ms");
	for (int i = 1; i < argc; i++)
		measure((uint32_t)strtoul(argv[i], NULL, 10));
	for (size_t i = 0; argc == 1 && i < sizeof(usual) / sizeof(usual[0]); i++)
		measure(usual[i]);
	return 0;
}
