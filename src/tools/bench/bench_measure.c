#include "tools/bench/bench_measure.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* ---- calls ---- */

/* A call to measure, and how it is made. */
struct measured_call {
	struct esp_group *group;
	struct esp_call call;
	struct esp_work *prepared; /* BENCH_PERSISTENT */
	enum bench_calls calls;
};

static struct measured_call measured_call_of(const struct bench_job *job, const struct bench_shape *shape,
                                             const char *plan, struct bench_place place)
{
	struct measured_call measured = {.group = job->world, .call = ESP_CALL_INIT, .calls = job->options->calls};

	measured.call.collective = shape->collective;
	measured.call.type = shape->type;
	if (bench_reduces(shape->collective)) {
		measured.call.op = shape->op;
		measured.call.factor = shape->op == ESP_SCALED ? BENCH_SCALE : 0;
	}
	measured.call.numerics = shape->numerics;
	measured.call.root = bench_has_root(shape->collective) ? shape->root : 0;
	measured.call.count = shape->count;
	measured.call.in = shape->collective == ESP_BROADCAST ? NULL : place.in;
	measured.call.out = place.out;
	measured.call.plan = plan;
	return measured;
}

static enum esp_status call_once(const struct measured_call *measured)
{
	struct esp_work *work = measured->prepared;
	enum esp_status status;

	if (measured->calls == BENCH_BLOCKING)
		return esp_run(measured->group, &measured->call);
	if (work)
		status = esp_restart(work);
	else
		status = esp_start(measured->group, &measured->call, &work);
	if (status == ESP_OK)
		status = esp_wait(work, -1);
	if (!measured->prepared)
		esp_work_free(work);
	return status;
}

static enum esp_status call_often(const struct measured_call *measured, uint64_t times)
{
	enum esp_status status = ESP_OK;

	for (uint64_t i = 0; i < times && status == ESP_OK; i++)
		status = call_once(measured);
	return status;
}

/* Runs the call once with esp_start(), whose work tells its plan. */
static enum esp_status learn_plan(struct bench_job *job, const struct measured_call *measured)
{
	struct esp_work *work = NULL;
	enum esp_status status = esp_start(measured->group, &measured->call, &work);

	if (status == ESP_OK)
		status = esp_wait(work, -1);
	if (status == ESP_OK)
		snprintf(job->plan, sizeof(job->plan), "%s", esp_work_plan(work));
	esp_work_free(work);
	return status;
}

/* ---- measuring ---- */

static bool is_wanted(const struct bench_job *job, enum esp_collective collective, enum bench_mode mode)
{
	return bench_has_mode(collective, mode) && (mode == BENCH_IN_PLACE || !job->options->in_place);
}

/*
 * Runs a call on fresh data, in the same way as the timed ones, and checks its result. Adds the number of wrong
 * elements on all ranks to *wrong.
 */
static enum esp_status check_call(struct bench_job *job, const struct bench_shape *shape, struct bench_place place,
                                  const struct measured_call *measured, uint64_t *wrong)
{
	uint64_t mine, all = 0;

	job->seed++;
	bench_fill(shape, job->seed, place);
	enum esp_status status = call_once(measured);
	if (status != ESP_OK)
		return status;
	mine = bench_wrong(shape, job->seed, place);
	status = esp_allreduce(job->world, &mine, &all, 1, ESP_U64, ESP_SUM);
	if (status == ESP_OK && all > *wrong)
		*wrong = all;
	return status;
}

/* One batch: a barrier, the calls, and an exchange of the times. */
static enum esp_status measure_batch(struct bench_job *job, const struct measured_call *measured, uint64_t start_ns,
                                     struct bench_pace *pace)
{
	enum esp_status status = esp_barrier(job->world);
	uint64_t begin_ns = clock_now_ns();

	if (status == ESP_OK)
		status = call_often(measured, bench_pace_calls(pace));
	uint64_t end_ns = clock_now_ns();
	uint64_t mine[2] = {end_ns - begin_ns, end_ns - start_ns}, slowest_ns = 0;
	if (status == ESP_OK)
		status = esp_allgather(job->world, mine, job->times_ns, 2, ESP_U64);
	if (status != ESP_OK)
		return status;
	for (uint32_t i = 0; i < job->ranks; i++)
		slowest_ns = job->times_ns[2 * i] > slowest_ns ? job->times_ns[2 * i] : slowest_ns;
	bench_pace_add(pace, job->times_ns[0], slowest_ns, job->times_ns[1]);
	return ESP_OK;
}

static struct bench_stats stats_of(const struct bench_job *job, const double *values, size_t count)
{
	double *sorted = job->samples + 2 * BENCH_MODE_COUNT * job->capacity;

	memcpy(sorted, values, count * sizeof(*values));
	return bench_stats(sorted, count);
}

static enum esp_status measure_mode(struct bench_job *job, const struct bench_shape *shape,
                                    struct measured_call *measured, double *samples_us, struct bench_result *out)
{
	const struct bench_options *options = job->options;
	bool both =
		is_wanted(job, shape->collective, BENCH_OUT_OF_PLACE) && is_wanted(job, shape->collective, BENCH_IN_PLACE);
	double *slowest_us = samples_us + job->capacity;
	enum esp_status status = ESP_OK;
	struct bench_pace pace;

	bench_pace_init(&pace, options->iters, (uint64_t)(options->seconds * 1e9) / (both ? 2 : 1), samples_us, slowest_us,
	                job->capacity);
	status = call_often(measured, options->warmup);
	uint64_t start_ns = clock_now_ns();
	while (status == ESP_OK && bench_pace_calls(&pace) > 0)
		status = measure_batch(job, measured, start_ns, &pace);
	if (status != ESP_OK)
		return status;
	out->measured = true;
	out->calls = pace.calls;
	out->samples_us = samples_us;
	out->sample_count = pace.count;
	out->stats = stats_of(job, samples_us, pace.count);
	out->slowest_us = stats_of(job, slowest_us, pace.count).p50;
	return ESP_OK;
}

/* Checks before, so that a wrong result is found at once, and again after all timed calls. */
static enum esp_status check_and_measure(struct bench_job *job, const struct bench_shape *shape, const char *plan,
                                         enum bench_mode mode, struct bench_result *out)
{
	struct bench_place place = bench_place(shape, mode, job->areas[0], job->areas[1]);
	struct measured_call measured = measured_call_of(job, shape, plan, place);
	bool check = job->options->check && shape->collective != ESP_BARRIER;

	/* Even if nothing is checked: pages that were never written are read faster than others. */
	bench_fill(shape, job->seed, place);
	enum esp_status status = learn_plan(job, &measured);
	if (status == ESP_OK && measured.calls == BENCH_PERSISTENT)
		status = esp_prepare(job->world, &measured.call, &measured.prepared);
	if (status == ESP_OK && check)
		status = check_call(job, shape, place, &measured, &out->wrong);
	if (status == ESP_OK)
		status = measure_mode(job, shape, &measured, job->samples + 2 * (size_t)mode * job->capacity, out);
	if (status == ESP_OK && check)
		status = check_call(job, shape, place, &measured, &out->wrong);
	out->checked = check;
	esp_work_free(measured.prepared);
	return status;
}

enum esp_status bench_measure(struct bench_job *job, const struct bench_shape *shape, const char *plan,
                              struct bench_row *out)
{
	enum esp_status status = ESP_OK;

	*out = (struct bench_row){
		.collective = shape->collective,
		.type = shape->type,
		.op = shape->op,
		.root = shape->root,
		.bytes = bench_bytes(shape),
		.count = shape->count,
		.asked_plan = plan,
		.plan = job->plan,
	};
	for (int mode = 0; mode < BENCH_MODE_COUNT && status == ESP_OK; mode++)
		if (is_wanted(job, shape->collective, (enum bench_mode)mode))
			status = check_and_measure(job, shape, plan, (enum bench_mode)mode, &out->results[mode]);
	return status;
}
