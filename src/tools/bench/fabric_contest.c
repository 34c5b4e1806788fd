#include "tools/bench/fabric_contest.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "espalier/hub.h"
#include "tools/bench/cores_time.h"

#define EXACT 0x1p24F /* whole numbers up to here have their own float */

struct run {
	const struct fabric_contest *contest;
	struct fabric_contest_result *result;
	uint64_t elements, start_ns, steps;
	float *weights, *gradient;
	struct esp_hub *hub;
	struct esp_context *job;
	struct cores_time before;
	bool is_counting;
};

static enum esp_status library_error(enum esp_status status, struct error *err)
{
	struct esp_error why = ESP_ERROR_INIT;

	if (status == ESP_OK)
		return ESP_OK;
	esp_last_error(&why);
	return error_set(err, status, "%s", why.text);
}

/* ---- time ---- */

static void sleep_until(uint64_t ns)
{
	const struct timespec until = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static void wait_for_start(struct run *run)
{
	uint64_t now = clock_now_ns();

	run->start_ns = run->contest->start_ns > 0 ? run->contest->start_ns : now;
	if (now > run->start_ns)
		run->result->late_seconds = (double)(now - run->start_ns) / (double)NS_PER_S;
	sleep_until(run->start_ns);
}

static bool is_over(const struct run *run)
{
	return clock_now_ns() >= run->start_ns + run->contest->warm_ns + run->contest->window_ns;
}

/* The time of a step of a worker that is slow now and then, in place of computing. */
static void compute(struct run *run)
{
	const struct fabric_contest *contest = run->contest;
	double slowness = fabric_weather_slowness(contest->stragglers, contest->seed, run->result->worker, run->steps++);

	if (run->steps == 1 && !contest->is_ring)
		slowness *= fabric_weather_rest(contest->seed, run->result->worker);
	sleep_until(clock_now_ns() + (uint64_t)((double)contest->compute_ns * slowness));
}

/* Is this moment in the window? The first and the last time that is asked, cores are looked at. */
static bool counts(struct run *run)
{
	uint64_t now = clock_now_ns(), from = run->start_ns + run->contest->warm_ns;

	if (!run->is_counting && now >= from) {
		run->is_counting = true;
		run->before = bench_cores_time();
	}
	return now >= from && now < from + run->contest->window_ns;
}

/* ---- asynchronous ---- */

/* Each weight is a whole number, and at least the version that was told. */
static void check(struct run *run, uint64_t version)
{
	float most = 0;

	for (uint64_t i = 0; i < run->elements; i++) {
		float applied = -run->weights[i];

		if (!(applied >= (float)version && applied <= EXACT) || applied != (float)(uint32_t)applied)
			run->result->wrong++;
		else if (applied > most)
			most = applied;
	}
	run->result->most = (uint64_t)most;
}

static enum esp_status pull(struct run *run, struct error *err)
{
	void *const to[] = {run->weights};
	enum esp_status status = library_error(esp_hub_model(run->hub, to, &run->result->version), err);

	if (status == ESP_OK)
		check(run, run->result->version);
	return status;
}

static void note(struct run *run, const struct esp_hub_result *update)
{
	struct fabric_contest_result *result = run->result;
	bool is_in = counts(run);

	result->at_source += update->fate == ESP_HUB_LATE_AT_SOURCE;
	result->at_offer += update->fate == ESP_HUB_LATE_AT_OFFER;
	result->at_hub += update->fate == ESP_HUB_LATE_AT_HUB;
	if (update->fate != ESP_HUB_APPLIED)
		return;
	result->applied++;
	result->counted += is_in;
	result->wrong += result->most >= update->version; /* this update was not in the weights that were read */
	result->delay_sum += update->delay;
	if (update->delay > result->delay_most)
		result->delay_most = update->delay;
}

static enum esp_status update(struct run *run, struct error *err)
{
	const void *const from[] = {run->gradient};
	struct esp_hub_update update = {.struct_size = sizeof(update), .gradients = from};
	struct esp_hub_result result = ESP_HUB_RESULT_INIT;
	enum esp_status status = run->steps == 0 ? ESP_OK : pull(run, err); /* it begins with the first weights */

	if (status != ESP_OK)
		return status;
	compute(run);
	update.computed_from = run->result->version;
	update.norm = 1;
	status = library_error(esp_hub_update(run->hub, &update, &result), err);
	if (status == ESP_OK)
		note(run, &result);
	return status;
}

static enum esp_status open_hub(struct run *run, struct error *err)
{
	const struct esp_hub_tensor tensor = {sizeof(tensor), "weights", run->elements, ESP_F32, 0, run->weights};
	enum esp_status status = library_error(esp_hub_connect(NULL, &run->hub), err);

	if (status != ESP_OK)
		return status;
	run->result->worker = esp_hub_worker(run->hub);
	return library_error(esp_hub_init(run->hub, &tensor, 1), err);
}

static enum esp_status run_updates(struct run *run, struct error *err)
{
	enum esp_status status = open_hub(run, err);

	if (status != ESP_OK)
		return status;
	wait_for_start(run);
	while (status == ESP_OK && !is_over(run))
		status = update(run, err);
	run->result->idle = bench_cores_idle_since(run->before);
	return status == ESP_OK ? pull(run, err) : status;
}

/* ---- in step ---- */

/* The last element tells all that rank 0 has seen the end. */
static enum esp_status reduce(struct run *run, bool *out_is_over, struct error *err)
{
	struct esp_call call = ESP_CALL_INIT;

	for (uint64_t i = 0; i < run->elements; i++)
		run->gradient[i] = 1;
	run->gradient[run->elements] = run->result->worker == 0 && is_over(run);
	call.collective = ESP_ALLREDUCE;
	call.type = ESP_F32;
	call.op = ESP_SUM;
	call.count = run->elements + 1;
	call.in = call.out = run->gradient;
	call.plan = esp_size(esp_world(run->job)) > 1 ? "ring" : NULL;
	enum esp_status status = library_error(esp_run(esp_world(run->job), &call), err);
	*out_is_over = run->gradient[run->elements] > 0;
	return status;
}

static void apply_sum(struct run *run, uint32_t workers)
{
	run->result->version += workers;
	for (uint64_t i = 0; i < run->elements; i++)
		run->weights[i] -= run->gradient[i];
	check(run, run->result->version);
	run->result->wrong += run->result->most != run->result->version;
	run->result->applied++;
	run->result->counted += counts(run);
}

static enum esp_status run_ring(struct run *run, struct error *err)
{
	enum esp_status status = library_error(esp_init(NULL, &run->job), err);
	bool has_ended = false;

	if (status != ESP_OK)
		return status;
	run->result->worker = esp_rank(esp_world(run->job));
	run->result->delay_most = 1;
	wait_for_start(run);
	while (status == ESP_OK && !has_ended) {
		compute(run);
		status = reduce(run, &has_ended, err);
		if (status == ESP_OK)
			apply_sum(run, esp_size(esp_world(run->job)));
	}
	run->result->idle = bench_cores_idle_since(run->before);
	run->result->delay_sum = run->result->applied;
	return status;
}

/* ---- both ---- */

static enum esp_status allocate(struct run *run, struct error *err)
{
	run->weights = calloc(run->elements + 1, sizeof(float));
	run->gradient = calloc(run->elements + 1, sizeof(float));
	if (!run->weights || !run->gradient)
		return error_set(err, ESP_ENOMEM, "no memory for a model of %llu bytes",
		                 (unsigned long long)run->contest->bytes);
	for (uint64_t i = 0; i < run->elements; i++)
		run->gradient[i] = 1;
	return ESP_OK;
}

enum esp_status bench_fabric_contest_run(const struct fabric_contest *contest, struct fabric_contest_result *out,
                                         struct error *err)
{
	struct run run = {.contest = contest, .result = out, .elements = contest->bytes / sizeof(float)};

	assert(run.elements > 0 && contest->window_ns > 0);
	*out = (struct fabric_contest_result){0};
	enum esp_status status = allocate(&run, err);
	if (status == ESP_OK)
		status = contest->is_ring ? run_ring(&run, err) : run_updates(&run, err);
	esp_hub_close(run.hub);
	if (run.job)
		(void)esp_fini(run.job);
	free(run.weights);
	free(run.gradient);
	return status;
}
