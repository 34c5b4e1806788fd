/*
 * sim_fabric_advise.c - espalier sim fabric advise: asynchronous or not, with which bound, and why.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/sim_fabric.h"
#include "tools/sim/sim_fabric.h"

#define COMMAND "sim fabric advise"
#define WORTH 0.95 /* asynchronous training has a price that is not modelled: bits differ from run to run */

static const enum fabric_way ways[] = {
	FABRIC_RING, FABRIC_RING_OVERLAP, FABRIC_PLAIN, FABRIC_SUMS, FABRIC_CHAINS, FABRIC_CHAINS_TWO};
enum { RING, OVERLAP, PLAIN, SUMS, CHAINS, CHAINS_TWO, WAYS };

struct advice {
	const struct fabric_row *best; /* of the asynchronous ways; NULL: none reaches the target */
	bool is_async, is_async_without_overlap;
	char text[640];
};

static const struct fabric_row *faster(const struct fabric_row *a, const struct fabric_row *b)
{
	if (!a || a->seconds <= 0)
		return b->seconds > 0 ? b : NULL;
	return b->seconds > 0 && b->seconds < a->seconds ? b : a;
}

static bool is_worth(const struct fabric_row *async, const struct fabric_row *ring)
{
	return async && (ring->seconds <= 0 || async->seconds < WORTH * ring->seconds);
}

static void say(struct advice *advice, const struct fabric_row rows[WAYS])
{
	const struct fabric_row *best = advice->best, *ring = &rows[OVERLAP];
	int at = 0;

	if (!best) {
		snprintf(advice->text, sizeof(advice->text), "Stay synchronous: no asynchronous way reaches the target.");
		return;
	}
	double rate = best->per_second / ring->per_second, needed = best->updates / ring->updates;
	if (advice->is_async)
		at = snprintf(advice->text, sizeof(advice->text), "Go asynchronous (%s), with a delay bound of %u.",
		              fabric_way_names[best->way], best->bound);
	else
		at = snprintf(advice->text, sizeof(advice->text), "Stay synchronous%s.",
		              advice->is_async_without_overlap ? ", if the allreduce overlaps with computing" : "");
	at += snprintf(advice->text + at, sizeof(advice->text) - (size_t)at,
	               " Beside a ring allreduce that overlaps, '%s' applies %.2f times as many updates a second and needs"
	               " %.2f times as many: %.2f times as fast to the same loss.",
	               fabric_way_names[best->way], rate, needed, rate / needed);
	if (advice->is_async_without_overlap && !advice->is_async)
		snprintf(advice->text + at, sizeof(advice->text) - (size_t)at,
		         " Beside one that does not overlap it is %.2f times as fast.", rows[RING].seconds / best->seconds);
	else if (advice->is_async)
		snprintf(advice->text + at, sizeof(advice->text) - (size_t)at,
		         " Delays are %.0f in the mean and %" PRIu64 " at most; a lower bound drops updates.", best->delay_mean,
		         best->delay_most);
}

static void think(struct advice *advice, const struct fabric_row rows[WAYS])
{
	*advice = (struct advice){.best = faster(&rows[PLAIN], &rows[SUMS])};
	advice->best = faster(faster(advice->best, &rows[CHAINS]), &rows[CHAINS_TWO]);
	advice->is_async = is_worth(advice->best, &rows[OVERLAP]);
	advice->is_async_without_overlap = is_worth(advice->best, &rows[RING]);
	say(advice, rows);
}

static enum esp_status print(const struct sim_fabric *fabric, const struct advice *advice,
                             const struct fabric_row *rows)
{
	const struct fabric_row *best = advice->best;
	struct json json;

	if (!fabric->json) {
		printf("%s\n\n%s\n\n", fabric->about, advice->text);
		enum esp_status status = sim_tool_fabric_print(fabric, rows, WAYS, NULL);
		printf("\nUpdates per second: in virtual time, with rates that the scheduler knows %s. Updates needed: SGD on\n"
		       "the task '%s' in the same runs, each way with its best learning rate; a real model may need more.\n"
		       "Live, chains run with espalier sched --aggregate best, and two updates in flight with in_flight=2.\n",
		       fabric->lag_s > 0 ? "late" : "at once", fabric_task_names[fabric->task]);
		return status;
	}
	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_string(&json, "case", fabric->about);
	json_put_string(&json, "advice", advice->text);
	json_put_bool(&json, "asynchronous", advice->is_async);
	json_put_bool(&json, "asynchronous_without_overlap", advice->is_async_without_overlap);
	json_put_string(&json, "best_asynchronous", best ? fabric_way_names[best->way] : NULL);
	json_put_u64(&json, "delay_bound", best ? best->bound : 0);
	json_put_double(&json, "rate_factor", best ? best->per_second / rows[OVERLAP].per_second : NAN);
	json_put_double(&json, "updates_factor", best ? best->updates / rows[OVERLAP].updates : NAN);
	json_put_string(&json, "task", fabric_task_names[fabric->task]);
	json_key(&json, "ways");
	return sim_tool_fabric_print(fabric, rows, WAYS, &json);
}

static int run(int argc, char **argv)
{
	struct sim_fabric fabric;
	struct option_spec options[SIM_FABRIC_OPTIONS];
	struct fabric_row rows[WAYS];
	struct advice advice;
	struct error err = {0};

	sim_tool_fabric_init(&fabric);
	sim_tool_fabric_options(&fabric, options);
	const struct options_usage usage = {
		COMMAND, "",
		"Says whether asynchronous updates would train a model faster on an uneven cluster, with which delay bound,\n"
		"and why: updates per second, and updates that are needed. It may answer that synchronous training is\n"
		"faster.\n\n"
		"  espalier sim fabric advise --model resnet-50 --hosts 15 --gbps 10 --weather N2 --stragglers C2",
		options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	enum esp_status status = sim_tool_fabric_cell(&fabric, &err);
	if (status == ESP_EINVAL)
		return complain_usage(COMMAND ": %s", err.text);
	for (uint32_t i = 0; i < WAYS && status == ESP_OK; i++)
		status = fabric_study_row(&fabric.cell, ways[i], &rows[i], &err);
	if (status == ESP_OK) {
		think(&advice, rows);
		status = print(&fabric, &advice, rows);
	}
	return status == ESP_OK ? EXIT_OK : complain(COMMAND ": %s", err.text[0] ? err.text : "cannot write the result");
}

const struct cli_command cli_sim_fabric_advise = {"advise", "asynchronous or not, with which bound, and why", run};
