#include "tools/bench/hub_contest.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jobs.h"
#include "espalier/hub.h"
#include "math/optimizer.h"
#include "tools/bench/cores_time.h"

#define CHUNK 8192u /* elements that the loop sums at a time: 32 KiB, a hub's default */
#define LOOP_WORKERS_MOST 64u

const char *const hub_way_names[HUB_WAYS + 1] = {"hub",       "mapped", "alone", "mean", "shards",
                                                    "allreduce", "flat",   "loop",  NULL};

struct run {
	const struct hub_contest *contest;
	struct optimizer optimizer;
	uint64_t elements;
	float *gradient, *weights, *states[OPTIMIZER_STATES];
	float **terms; /* of the loop: a gradient of each worker */
	uint32_t worker, workers;
	uint64_t step;
	double *seconds, *optimizer_seconds; /* by iteration, those of warming up first */
	struct esp_context *job;
	struct esp_hub *hub;
	struct esp_work **works;
	void **shared;  /* by tensor: a gradient in memory that the hub or the pusher reads; NULL: none */
	bool has_alloc; /* gradient is from esp_alloc() */
};

static enum esp_status library_error(enum esp_status status, struct error *err)
{
	struct esp_error why = ESP_ERROR_INIT;

	if (status == ESP_OK)
		return ESP_OK;
	esp_last_error(&why);
	return error_set(err, status, "%s", why.text);
}

/* ---- data: the gradient of worker w is w + 1 everywhere, so the mean is exact ---- */

static void fill(float *to, uint64_t count, uint32_t worker)
{
	for (uint64_t i = 0; i < count; i++)
		to[i] = (float)(worker + 1);
}

/* Weights after so many steps from zero: elements are alike. */
static float expected_weight(const struct run *run, uint32_t steps)
{
	float weight = 0, sum = (float)(run->workers * (run->workers + 1) / 2), states[OPTIMIZER_STATES] = {0};

	for (uint32_t step = 1; step <= steps; step++) {
		struct optimizer_step one = {
			.optimizer = &run->optimizer, .step = step, .contributors = run->workers, .weights = &weight, .sum = &sum};
		for (uint32_t i = 0; i < OPTIMIZER_STATES; i++)
			one.states[i] = &states[i];
		optimizer_run(&one, 1);
	}
	return weight;
}

static uint64_t count_wrong(const struct run *run)
{
	float expected = expected_weight(run, run->contest->warmup + run->contest->iterations);
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < run->elements; i++)
		wrong += memcmp(&run->weights[i], &expected, sizeof(expected)) != 0;
	return wrong;
}

/* ---- the hub ---- */

static bool has_hub(const struct run *run)
{
	enum hub_way way = run->contest->way;

	return way == HUB_WAY_HUB || way == HUB_WAY_MAPPED || way == HUB_WAY_ALONE || way == HUB_WAY_MEAN ||
	       way == HUB_WAY_SHARDS;
}

static enum esp_status connect_hub(struct run *run)
{
	static const char *const settings[] = {"transport=tcp", NULL};
	struct esp_hub_options options = ESP_HUB_OPTIONS_INIT;

	if (run->contest->way == HUB_WAY_ALONE)
		options.settings = settings;
	return esp_hub_connect(&options, &run->hub);
}

static enum esp_status open_hub(struct run *run, struct error *err)
{
	const struct hub_contest *contest = run->contest;
	enum esp_status status = connect_hub(run);

	if (status != ESP_OK)
		return library_error(status, err);
	run->worker = esp_hub_worker(run->hub);
	run->workers = esp_hub_workers(run->hub);
	struct esp_hub_tensor *tensors = calloc(contest->tensors, sizeof(*tensors));
	char(*names)[24] = calloc(contest->tensors, sizeof(*names));
	run->works = calloc(contest->tensors, sizeof(struct esp_work *));
	if (!tensors || !names || !run->works) {
		status = error_set(err, ESP_ENOMEM, "no memory for the tensors");
	} else {
		float *at = run->weights;
		for (uint32_t i = 0; i < contest->tensors; i++) {
			snprintf(names[i], sizeof(names[i]), "tensor%u", i);
			tensors[i] = (struct esp_hub_tensor){sizeof(tensors[i]), names[i], contest->elements[i], ESP_F32, 0, at};
			at += contest->elements[i];
		}
		status = library_error(esp_hub_init(run->hub, tensors, contest->tensors), err);
	}
	free(tensors);
	free(names);
	return status;
}

static enum esp_status iterate_hub(struct run *run, struct error *err)
{
	enum esp_status status = ESP_OK;
	uint64_t at = 0;
	uint32_t started = 0;

	for (uint32_t i = 0; status == ESP_OK && i < run->contest->tensors; i++) {
		struct esp_hub_call call = ESP_HUB_CALL_INIT;
		call.kind = run->contest->way == HUB_WAY_MAPPED ? ESP_HUB_PUSH : ESP_HUB_PUSHPULL;
		call.tensor = i;
		call.gradient = run->shared ? run->shared[i] : run->gradient + at;
		call.weights = run->weights + at;
		status = library_error(esp_hub_start(run->hub, &call, &run->works[i]), err);
		started += status == ESP_OK;
		at += run->contest->elements[i];
	}
	for (uint32_t i = 0; i < started; i++) {
		enum esp_status ended = esp_wait(run->works[i], -1);
		if (status == ESP_OK)
			status = library_error(ended, err);
		esp_work_free(run->works[i]);
	}
	return status;
}

static enum esp_status place_gradients(struct run *run, struct error *err)
{
	enum esp_status status = ESP_OK;

	run->shared = calloc(run->contest->tensors, sizeof(*run->shared));
	if (!run->shared)
		return error_set(err, ESP_ENOMEM, "no memory for the tensors");
	for (uint32_t i = 0; status == ESP_OK && i < run->contest->tensors; i++) {
		status = library_error(esp_hub_gradient(run->hub, i, &run->shared[i]), err);
		if (status == ESP_OK)
			fill(run->shared[i], run->contest->elements[i], run->worker);
	}
	return status;
}

/* To be looked at as those of the other ways are. */
static enum esp_status copy_mapped(struct run *run, struct error *err)
{
	float *at = run->weights;

	for (uint32_t i = 0; i < run->contest->tensors; i++) {
		const void *mapped;
		enum esp_status status = library_error(esp_hub_map(run->hub, i, &mapped), err);

		if (status != ESP_OK)
			return status;
		memcpy(at, mapped, run->contest->elements[i] * sizeof(float));
		at += run->contest->elements[i];
	}
	return ESP_OK;
}

/* ---- allreduce, and the optimizer on every worker ---- */

static enum esp_status open_job(struct run *run, struct error *err)
{
	enum esp_status status = esp_init(NULL, &run->job);

	if (status != ESP_OK)
		return library_error(status, err);
	run->worker = esp_rank(esp_world(run->job));
	run->workers = esp_size(esp_world(run->job));
	status = esp_alloc(run->job, run->elements * sizeof(float), (void **)&run->gradient);
	run->has_alloc = status == ESP_OK;
	return library_error(status, err);
}

static void optimize(struct run *run)
{
	struct optimizer_step step = {.optimizer = &run->optimizer,
	                              .step = run->step,
	                              .contributors = run->workers,
	                              .weights = run->weights,
	                              .sum = run->gradient};

	for (uint32_t i = 0; i < OPTIMIZER_STATES; i++)
		step.states[i] = run->states[i];
	optimizer_run(&step, run->elements);
}

static enum esp_status iterate_job(struct run *run, double *out_optimizer_seconds, struct error *err)
{
	struct esp_call call = ESP_CALL_INIT;

	call.collective = ESP_ALLREDUCE;
	call.type = ESP_F32;
	call.op = ESP_SUM;
	call.count = run->elements;
	call.in = call.out = run->gradient;
	call.plan = run->contest->way == HUB_WAY_FLAT ? "flat" : NULL;
	enum esp_status status = library_error(esp_run(esp_world(run->job), &call), err);
	uint64_t began = clock_now_ns();
	if (status == ESP_OK)
		optimize(run);
	*out_optimizer_seconds = (double)(clock_now_ns() - began) / (double)NS_PER_S;
	return status;
}

/* The sum lies where the gradient was: a new one, and all workers begin together. */
static enum esp_status refill(struct run *run, struct error *err)
{
	fill(run->gradient, run->elements, run->worker);
	return library_error(esp_barrier(esp_world(run->job)), err);
}

/* ---- the loop: what memory and cores allow ---- */

static enum esp_status open_loop(struct run *run, struct error *err)
{
	uint32_t workers = run->contest->workers;

	assert(workers >= 1 && workers <= LOOP_WORKERS_MOST && run->contest->threads >= 1);
	run->workers = workers;
	run->terms = calloc(workers, sizeof(*run->terms));
	for (uint32_t i = 0; run->terms && i < workers; i++) {
		run->terms[i] = aligned_alloc(64, (run->elements * sizeof(float) + 63) / 64 * 64);
		if (!run->terms[i])
			return error_set(err, ESP_ENOMEM, "no memory for %u gradients", workers);
		fill(run->terms[i], run->elements, i);
	}
	return run->terms ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for %u gradients", workers);
}

static void loop_chunk(const struct run *run, uint64_t first, size_t count)
{
	float sum[CHUNK];
	const void *sources[LOOP_WORKERS_MOST];

	for (uint32_t i = 0; i < run->workers; i++)
		sources[i] = run->terms[i] + first;
	if (run->workers > 1)
		math_fold_many(ESP_F32, ESP_SUM, sum, sources, run->workers, count);
	struct optimizer_step step = {.optimizer = &run->optimizer,
	                              .step = run->step,
	                              .contributors = run->workers,
	                              .weights = run->weights + first,
	                              .sum = run->workers > 1 ? sum : sources[0]};
	for (uint32_t i = 0; i < OPTIMIZER_STATES; i++)
		step.states[i] = run->states[i] ? run->states[i] + first : NULL;
	optimizer_run(&step, count);
}

/* A thread's part: every threads-th chunk. */
static enum esp_status loop_piece(void *user, uint32_t nth, struct error *err)
{
	const struct run *run = user;

	(void)err;
	for (uint64_t first = (uint64_t)nth * CHUNK; first < run->elements;
	     first += (uint64_t)run->contest->threads * CHUNK)
		loop_chunk(run, first, run->elements - first < CHUNK ? run->elements - first : CHUNK);
	return ESP_OK;
}

/* ---- all ways ---- */

static enum esp_status open_way(struct run *run, struct error *err)
{
	switch (run->contest->way) {
	case HUB_WAY_LOOP:
		return open_loop(run, err);
	default:
		return has_hub(run) ? open_hub(run, err) : open_job(run, err);
	}
}

static enum esp_status iterate(struct run *run, uint32_t i, struct error *err)
{
	const struct hub_contest *contest = run->contest;
	enum esp_status status = ESP_OK;

	run->step++;
	if (run->job)
		status = refill(run, err);
	if (status != ESP_OK)
		return status;
	uint64_t began = clock_now_ns();
	if (run->hub)
		status = iterate_hub(run, err);
	else if (contest->way == HUB_WAY_LOOP)
		status = jobs_run(contest->threads, contest->threads, loop_piece, run, err);
	else
		status = iterate_job(run, &run->optimizer_seconds[i], err);
	run->seconds[i] = (double)(clock_now_ns() - began) / (double)NS_PER_S;
	return status;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, uint32_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static enum esp_status measure(struct run *run, struct hub_contest_result *out, struct error *err)
{
	const struct hub_contest *contest = run->contest;
	struct cores_time before = bench_cores_time();
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; status == ESP_OK && i < contest->warmup + contest->iterations; i++) {
		if (i == contest->warmup)
			before = bench_cores_time();
		status = iterate(run, i, err);
	}
	if (status != ESP_OK)
		return status;
	out->idle = bench_cores_idle_since(before);
	if (contest->way == HUB_WAY_MAPPED)
		status = copy_mapped(run, err);
	if (status != ESP_OK)
		return status;
	out->worker = run->worker;
	out->wrong = count_wrong(run);
	out->optimizer_seconds = median(run->optimizer_seconds + contest->warmup, contest->iterations);
	double *timed = run->seconds + contest->warmup;
	out->seconds = median(timed, contest->iterations);
	out->least = timed[0];
	out->most = timed[contest->iterations - 1];
	return ESP_OK;
}

static enum esp_status allocate(struct run *run, struct error *err)
{
	const struct hub_contest *contest = run->contest;
	size_t bytes = (run->elements * sizeof(float) + 63) / 64 * 64, count = contest->warmup + contest->iterations;

	run->weights = aligned_alloc(64, bytes);
	run->seconds = calloc(count, sizeof(double));
	run->optimizer_seconds = calloc(count, sizeof(double));
	bool is_whole = run->weights && run->seconds && run->optimizer_seconds;
	if (has_hub(run)) {
		run->gradient = aligned_alloc(64, bytes);
		is_whole = is_whole && run->gradient;
	}
	for (uint32_t i = 0; !has_hub(run) && i < optimizer_states(&run->optimizer); i++) {
		run->states[i] = aligned_alloc(64, bytes);
		is_whole = is_whole && run->states[i];
		if (run->states[i])
			memset(run->states[i], 0, bytes);
	}
	if (!is_whole)
		return error_set(err, ESP_ENOMEM, "no memory for a model of %zu bytes", bytes);
	memset(run->weights, 0, bytes);
	return ESP_OK;
}

static void release(struct run *run)
{
	esp_hub_close(run->hub);
	if (run->has_alloc)
		esp_free(run->job, run->gradient);
	else if (!run->job)
		free(run->gradient);
	if (run->job)
		(void)esp_fini(run->job);
	for (uint32_t i = 0; run->terms && i < run->contest->workers; i++)
		free(run->terms[i]);
	for (uint32_t i = 0; i < OPTIMIZER_STATES; i++)
		free(run->states[i]);
	free(run->terms);
	free(run->works);
	free(run->shared);
	free(run->weights);
	free(run->seconds);
	free(run->optimizer_seconds);
}

enum esp_status bench_hub_contest_run(const struct hub_contest *contest, struct hub_contest_result *out,
                                      struct error *err)
{
	struct run run = {.contest = contest};

	assert(contest->iterations >= 1 && contest->tensors >= 1);
	const char *optimizer = contest->way == HUB_WAY_MEAN ? "avg" : contest->optimizer;
	enum esp_status status = optimizer_parse(optimizer, &run.optimizer, err);
	if (status != ESP_OK)
		return status;
	for (uint32_t i = 0; i < contest->tensors; i++)
		run.elements += contest->elements[i];
	*out = (struct hub_contest_result){0};
	status = allocate(&run, err);
	if (status == ESP_OK)
		status = open_way(&run, err);
	if (status == ESP_OK && contest->way == HUB_WAY_MAPPED)
		status = place_gradients(&run, err);
	if (status == ESP_OK && has_hub(&run))
		fill(run.gradient, run.elements, run.worker);
	if (status == ESP_OK)
		status = measure(&run, out, err);
	release(&run);
	return status;
}
