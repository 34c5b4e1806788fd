#include "tools/plan/plan_work.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report/complain.h"

#define LONG_SECONDS 4.0

/* Time of a row; these were measured with `espalier plan check` at 512 to 2,048 nodes. */
#define ROW_NS 220.0
#define BUTTERFLY_ROUND_NS 160.0 /* a row of a butterfly has a message for each of log N rounds */
#define EXCHANGE_PEER_NS 350.0   /* a row of an exchange has a message from every other node */
#define IDLE_ROW_NS 30.0         /* in an all-to-all of flat or exchange, nearly all nodes take no part in a chunk */

static double row_ns(const struct planner *planner, enum plan_collective collective, uint32_t workers)
{
	const char *name = planner ? plan_planner_name(planner) : "";
	bool is_exchange = strcmp(name, "exchange") == 0;

	if (collective == PLAN_ALLTOALL && (is_exchange || strcmp(name, "flat") == 0))
		return IDLE_ROW_NS;
	if (is_exchange && (collective == PLAN_ALLREDUCE || collective == PLAN_BARRIER))
		return fmax(ROW_NS, EXCHANGE_PEER_NS * workers);
	if (strcmp(name, "butterfly") == 0 && plan_collective_reduces(collective))
		return fmax(ROW_NS, BUTTERFLY_ROUND_NS * log2(workers));
	return ROW_NS;
}

static double seconds_of(const struct planner *planner, enum plan_collective collective, uint32_t workers, double rows)
{
	return rows * row_ns(planner, collective, workers) / 1e9;
}

void plan_tool_work_add(struct plan_work *work, const struct planner *planner, const struct plan_setup *setup)
{
	const struct chunks_spec *spec = &setup->spec.chunks;
	double rows = (double)spec->workers * (double)setup->chunk_count;

	work->rows += rows;
	work->seconds += seconds_of(planner, spec->collective, spec->workers, rows);
}

static double rows_of(const struct plan *plan)
{
	return (double)plan->workers * (double)plan->chunks.chunk_count;
}

void plan_tool_work_add_plan(struct plan_work *work, const struct plan *plan)
{
	work->rows += rows_of(plan);
	work->seconds += seconds_of(plan->planner, plan->chunks.collective, plan->workers, rows_of(plan));
}

static const char *duration(double seconds, char text[32])
{
	if (seconds < 120)
		snprintf(text, 32, "%.0f seconds", seconds);
	else if (seconds < 2 * 3600)
		snprintf(text, 32, "%.0f minutes", seconds / 60);
	else if (seconds < 2 * 86400)
		snprintf(text, 32, "%.0f hours", seconds / 3600);
	else
		snprintf(text, 32, "%.0f days", seconds / 86400);
	return text;
}

void plan_tool_work_announce(struct plan_work *work, const char *command)
{
	char text[32];

	work->command = command;
	work->percent = -1;
	if (work->seconds < LONG_SECONDS)
		return;
	work->shows = isatty(STDERR_FILENO) == 1;
	complain_note("%s: %.0f rows (what a node does with a chunk) will take about %s", command, work->rows,
	              duration(work->seconds, text));
}

/* ---- progress ---- */

static void on_message(void *context, uint64_t chunk, uint32_t from, uint32_t to, uint32_t round, uint64_t bytes,
                       bool reduced)
{
	struct plan_work *work = context;
	double done = work->done + work->now * (double)chunk / (double)work->chunks;
	int percent = (int)(100 * done / work->seconds);
	(void)from, (void)to, (void)round, (void)bytes, (void)reduced;

	if (percent == work->percent)
		return;
	work->percent = percent;
	fprintf(stderr, "\respalier: %s: %d %%", work->command, percent);
}

enum esp_status plan_tool_work_check(struct plan_work *work, const struct plan *plan, struct plan_report *out_report,
                                     struct plan_fault *out_fault, struct error *err)
{
	const struct plan_observer observer = {.message = on_message, .context = work};

	work->chunks = plan->chunks.chunk_count;
	work->now = seconds_of(plan->planner, plan->chunks.collective, plan->workers, rows_of(plan));
	enum esp_status status = plan_check(plan, work->shows ? &observer : NULL, out_report, out_fault, err);
	work->done += work->now;
	return status;
}

void plan_tool_work_end(struct plan_work *work)
{
	if (work->shows && work->percent >= 0)
		fputs("\r\033[K", stderr);
	work->percent = -1;
}
