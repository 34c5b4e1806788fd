#include "tools/bench/fabric_stage.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/bench/child.h"

#define HUB_PORT 7700u
#define BEST_PORT 7900u /* of the scheduler with chains; of the other one it is one more */
#define START_SECONDS 2.0 /* until all workers are there, and as much again for each eight of them */
#define FIRST_MODELS 1.5  /* times the model of each worker through the hub's link */
#define PATIENCE_SECONDS 60.0
#define RESULT                                                                                                        \
	"fabric_contest worker %" SCNu32 " counted %" SCNu64 " applied %" SCNu64 " source %" SCNu64 " offer %" SCNu64      \
	" hub %" SCNu64 " delays %" SCNu64 " greatest %" SCNu64 " version %" SCNu64 " most %" SCNu64 " wrong %" SCNu64     \
	" idle %lf late %lf"

/* ---- the hub and the schedulers ---- */

static void address_of(const struct fabric_stage *stage, unsigned port, char text[96])
{
	snprintf(text, 96, "%s:%u", stage->rack.last_address, port);
}

static enum esp_status start_hub(struct fabric_stage *stage, const char *key, struct error *err)
{
	char address[96], log[RACK_PATH];
	struct child_words words;

	address_of(stage, HUB_PORT, address);
	bench_rack_begin(&stage->rack, &words, true);
	bench_child_add_all(&words, (const char *const[]){"hub", "--listen", address, "--key-file", key, NULL});
	return bench_child_start(&words, bench_rack_path(&stage->rack, "hub.log", log), &stage->daemons[0], err);
}

static enum esp_status start_scheduler(struct fabric_stage *stage, enum fabric_plan_way way, const char *key,
                                       struct error *err)
{
	const char *name = fabric_plan_ways[way];
	char address[96], log[RACK_PATH], file[32], batch[32], rate[32], hub_rate[32];
	struct child_words words;

	address_of(stage, BEST_PORT + way, address);
	snprintf(file, sizeof(file), "sched-%s.log", name);
	snprintf(batch, sizeof(batch), "%" PRIu64 "us", stage->plan.batch_ns / NS_PER_US);
	snprintf(rate, sizeof(rate), "%" PRIu64 "bit", stage->rate_bits);
	snprintf(hub_rate, sizeof(hub_rate), "%" PRIu64 "bit", stage->hub_rate_bits);
	bench_rack_begin(&stage->rack, &words, true);
	bench_child_add_all(&words, (const char *const[]){"sched", "--listen", address, "--key-file", key, "--batch", batch,
	                                                  "--rate", rate, "--hub-rate", hub_rate, "--aggregate", name,
	                                                  NULL});
	return bench_child_start(&words, bench_rack_path(&stage->rack, file, log), &stage->daemons[1 + way], err);
}

/* The hub has made the key when it has created a job. */
static enum esp_status create_job(struct fabric_stage *stage, enum fabric_plan_way way, struct error *err)
{
	char hub[96], sched[96], key[RACK_PATH], ticket[RACK_PATH], name[24], workers[16], bound[16];
	struct child_words words;

	address_of(stage, HUB_PORT, hub);
	address_of(stage, BEST_PORT + way, sched);
	snprintf(name, sizeof(name), "bench%u", ++stage->jobs);
	snprintf(workers, sizeof(workers), "%u", stage->plan.workers);
	snprintf(bound, sizeof(bound), "%u", stage->plan.delay_bound);
	bench_rack_begin(&stage->rack, &words, true);
	bench_child_add_all(&words,
	                    (const char *const[]){"hub", "create", name, "--hub", hub, "--key-file",
	                                          bench_rack_path(&stage->rack, "hub.key", key), "--workers", workers,
	                                          "--mode", "async", "--delay-bound", bound, "--optimizer",
	                                          FABRIC_CONTEST_OPTIMIZER,
	                                          "--ticket-file",
	                                          bench_rack_path(&stage->rack, "job.ticket", ticket), NULL});
	if (way != FABRIC_PLAN_PLAIN)
		bench_child_add_all(&words, (const char *const[]){"--sched", sched, NULL});
	return bench_child_do(&words, RACK_SETUP_SECONDS, err);
}

static enum esp_status remove_job(const struct fabric_stage *stage, struct error *err)
{
	char hub[96], key[RACK_PATH], ticket[RACK_PATH], name[24];
	struct child_words words;

	address_of(stage, HUB_PORT, hub);
	snprintf(name, sizeof(name), "bench%u", stage->jobs);
	remove(bench_rack_path(&stage->rack, "job.ticket", ticket));
	bench_rack_begin(&stage->rack, &words, true);
	bench_child_add_all(&words, (const char *const[]){"hub", "remove", name, "--hub", hub, "--key-file",
	                                                  bench_rack_path(&stage->rack, "hub.key", key), NULL});
	return bench_child_do(&words, RACK_SETUP_SECONDS, err);
}

static enum esp_status start_daemons(struct fabric_stage *stage, struct error *err)
{
	char key[RACK_PATH];

	bench_rack_path(&stage->rack, "hub.key", key);
	enum esp_status status = start_hub(stage, key, err);
	if (status == ESP_OK) /* which ends when the hub serves and the key is there */
		status = create_job(stage, FABRIC_PLAN_PLAIN, err);
	if (status == ESP_OK)
		status = remove_job(stage, err);
	if (status == ESP_OK)
		status = start_scheduler(stage, FABRIC_PLAN_BEST, key, err);
	if (status == ESP_OK)
		status = start_scheduler(stage, FABRIC_PLAN_PAPER, key, err);
	return status;
}

/* ---- opening and closing ---- */

enum esp_status bench_fabric_stage_open(struct fabric_stage *stage, const struct fabric_plan *plan, uint64_t rate_bits,
                                        uint64_t hub_rate_bits, struct error *err)
{
	*stage = (struct fabric_stage){.plan = *plan, .rate_bits = rate_bits, .hub_rate_bits = hub_rate_bits};
	enum esp_status status = bench_rack_open(&stage->rack, err);

	assert(plan->workers >= 1 && plan->workers <= FABRIC_WORKERS_MOST);
	if (status == ESP_OK)
		status = bench_rack_make_lab(&stage->rack, "benchfabric", plan->workers, rate_bits, hub_rate_bits, err);
	if (status == ESP_OK)
		status = bench_lab_weather_open(&stage->weather, stage->rack.lab, &stage->plan, rate_bits, err);
	if (status == ESP_OK)
		status = start_daemons(stage, err);
	if (status != ESP_OK) {
		if (status != ESP_EABORTED)
			bench_rack_show_log(&stage->rack, "hub.log");
		bench_fabric_stage_close(stage);
	}
	return status;
}

void bench_fabric_stage_close(struct fabric_stage *stage)
{
	struct error err;

	(void)!bench_lab_weather_end(&stage->weather, &err);
	for (uint32_t i = FABRIC_STAGE_DAEMONS; i > 0; i--)
		bench_child_stop(stage->daemons[i - 1]);
	bench_rack_close(&stage->rack);
}

/* ---- results ---- */

void bench_fabric_stage_tell(const struct fabric_contest_result *result)
{
	printf("fabric_contest worker %" PRIu32 " counted %" PRIu64 " applied %" PRIu64 " source %" PRIu64
	       " offer %" PRIu64 " hub %" PRIu64 " delays %" PRIu64 " greatest %" PRIu64 " version %" PRIu64
	       " most %" PRIu64 " wrong %" PRIu64 " idle %.6f late %.6f\n",
	       result->worker, result->counted, result->applied, result->at_source, result->at_offer, result->at_hub,
	       result->delay_sum, result->delay_most, result->version, result->most, result->wrong, result->idle,
	       result->late_seconds);
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void add_result(struct fabric_stage_result *sum, const struct fabric_contest_result *one)
{
	sum->counted += one->counted;
	sum->applied += one->applied;
	sum->at_source += one->at_source;
	sum->at_offer += one->at_offer;
	sum->at_hub += one->at_hub;
	sum->delay_mean += (double)one->delay_sum;
	sum->delay_most = most_of(sum->delay_most, one->delay_most);
	sum->wrong += one->wrong;
	sum->idle = one->worker == 0 ? one->idle : sum->idle;
	sum->late_seconds = one->late_seconds > sum->late_seconds ? one->late_seconds : sum->late_seconds;
}

/* The worker whose update was the last one has read all of them, and no worker has read more. */
static enum esp_status read_results(const char *text, uint32_t workers, struct fabric_stage_result *out,
                                    struct error *err)
{
	uint64_t version = 0, most = 0;
	uint32_t found = 0;

	*out = (struct fabric_stage_result){0};
	for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		struct fabric_contest_result one;

		if (sscanf(line, RESULT, &one.worker, &one.counted, &one.applied, &one.at_source, &one.at_offer, &one.at_hub,
		           &one.delay_sum, &one.delay_most, &one.version, &one.most, &one.wrong, &one.idle,
		           &one.late_seconds) != 13)
			continue;
		found++;
		version = most_of(version, one.version);
		most = most_of(most, one.most);
		add_result(out, &one);
	}
	if (found != workers)
		return error_set(err, ESP_EIO, "%u of %u workers told their results", found, workers);
	out->delay_mean = out->applied > 0 ? out->delay_mean / (double)out->applied : 0;
	if (version != out->applied || most != out->applied)
		return error_set(err, ESP_ECORRUPT,
		                 "%" PRIu64 " updates were applied, but weights have version %" PRIu64 ", and up to %" PRIu64,
		                 out->applied, version, most);
	return ESP_OK;
}

/* ---- a run ---- */

/* When all workers can be there: each gets the first model from the hub before. */
static uint64_t choose_start(const struct fabric_plan *plan, enum fabric_plan_way way)
{
	double seconds = START_SECONDS * (1 + plan->workers / 8.0);

	if (way != FABRIC_PLAN_RING)
		seconds += FIRST_MODELS * (plan->workers + 1) * (double)plan->bytes / (double)plan->hub_rate;
	return clock_now_ns() + (uint64_t)(seconds * (double)NS_PER_S);
}

static void add_number(struct child_words *words, const char *option, uint64_t value, char text[24])
{
	snprintf(text, 24, "%" PRIu64, value);
	bench_child_add(words, option);
	bench_child_add(words, text);
}

static enum esp_status run_workers(const struct fabric_stage *stage, enum fabric_plan_way way, uint64_t start_ns,
                                   struct fabric_stage_result *out, struct error *err)
{
	const struct fabric_plan *plan = &stage->plan;
	char numbers[6][24], workers[16], ticket[RACK_PATH], variable[RACK_PATH + 20], *text;
	struct child_words words;

	snprintf(workers, sizeof(workers), "%u", plan->workers);
	snprintf(variable, sizeof(variable), "ESP_HUB_TICKET=%s", bench_rack_path(&stage->rack, "job.ticket", ticket));
	bench_rack_launch(&stage->rack, &words, workers, variable);
	bench_child_add_all(&words, (const char *const[]){stage->rack.self, "bench", "fabric", "--as",
	                                                  fabric_plan_ways[way], "--stragglers", plan->stragglers->name,
	                                                  NULL});
	add_number(&words, "--size", plan->bytes, numbers[0]);
	add_number(&words, "--compute-ns", plan->compute_ns, numbers[1]);
	add_number(&words, "--seed", plan->seed, numbers[2]);
	add_number(&words, "--start-ns", start_ns, numbers[3]);
	add_number(&words, "--warm-ns", plan->warm_ns, numbers[4]);
	add_number(&words, "--window-ns", plan->window_ns, numbers[5]);
	double seconds = (double)(start_ns - clock_now_ns() + plan->warm_ns + plan->window_ns) / (double)NS_PER_S;
	enum esp_status status = bench_child_run(&words, seconds + PATIENCE_SECONDS, &text, err);
	if (status != ESP_OK)
		return status;
	status = read_results(text, plan->workers, out, err);
	free(text);
	return status;
}

enum esp_status bench_fabric_stage_run(struct fabric_stage *stage, enum fabric_plan_way way,
                                       struct fabric_stage_result *out, struct error *err)
{
	enum esp_status status = way == FABRIC_PLAN_RING ? ESP_OK : create_job(stage, way, err);
	struct error other;

	if (status != ESP_OK)
		return status;
	uint64_t start_ns = choose_start(&stage->plan, way);
	status = bench_lab_weather_begin(&stage->weather, start_ns, err);
	if (status == ESP_OK)
		status = run_workers(stage, way, start_ns, out, err);
	enum esp_status weather = bench_lab_weather_end(&stage->weather, status == ESP_OK ? err : &other);
	if (status == ESP_OK)
		status = weather;
	if (status == ESP_OK && way != FABRIC_PLAN_RING)
		status = remove_job(stage, err);
	return status;
}
