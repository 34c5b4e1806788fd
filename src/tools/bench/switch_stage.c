#include "tools/bench/switch_stage.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/bench/child.h"
#include "tools/bench/hub_stage.h"
#include "tools/lab/client.h"
#include "tools/lab/lab_switch.h"

#define LOOPBACK_PORT 27800u /* and up to 999 more: so that several may run */
#define SETUP_SECONDS 120.0
#define LISTEN_PATIENCE (20 * NS_PER_S)

static void begin(const struct switch_stage *stage, struct child_words *words)
{
	*words = (struct child_words){.count = 0};
	bench_child_add(words, stage->self);
}

static void add_all(struct child_words *words, const char *const *more)
{
	for (; *more; more++)
		bench_child_add(words, *more);
}

static enum esp_status do_command(const struct child_words *words, struct error *err)
{
	char *text = NULL;
	enum esp_status status = bench_child_run(words, SETUP_SECONDS, &text, err);

	if (status == ESP_OK)
		free(text);
	return status;
}

/* ---- the lab ---- */

static enum esp_status find_address(struct switch_stage *stage, struct error *err)
{
	const struct lab *lab;
	enum esp_status status = lab_client_map(stage->lab, &lab, err);

	if (status != ESP_OK)
		return status;
	lab_switch_address(lab, stage->address);
	lab_client_unmap(lab);
	return ESP_OK;
}

/* A rack of the workers and one more host, the last, with its faster link and the switch. */
static enum esp_status make_lab(struct switch_stage *stage, struct error *err)
{
	char hosts[16], rate[32], place[48];
	struct child_words words;

	snprintf(stage->lab, sizeof(stage->lab), "benchswitch%d", (int)getpid());
	snprintf(hosts, sizeof(hosts), "%u", stage->config.workers + 1);
	snprintf(rate, sizeof(rate), "%" PRIu64 "bit", stage->config.rate);
	snprintf(place, sizeof(place), "rack0/%u:%gx", stage->config.workers, stage->config.links);
	begin(stage, &words);
	add_all(&words, (const char *const[]){"lab", "up", "--name", stage->lab, "--racks", "1", "--hosts", hosts, "--rate",
	                                      rate, "--switch", place, "--no-check", "--json", NULL});
	enum esp_status status = do_command(&words, err);
	if (status != ESP_OK) {
		stage->lab[0] = '\0';
		return status;
	}
	return find_address(stage, err);
}

/* ---- the switch, without a lab ---- */

static enum esp_status start_switch(struct switch_stage *stage, struct error *err)
{
	struct child_words words;

	begin(stage, &words);
	add_all(&words, (const char *const[]){"switch", "--listen", stage->address, NULL});
	return bench_child_start(&words, stage->log, &stage->server, err);
}

static bool has_begun(const struct switch_stage *stage)
{
	FILE *file = fopen(stage->log, "re");
	char line[512];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, "listens at") != NULL;
	if (file)
		fclose(file);
	return found;
}

/* Its log says when it listens: ranks that start before do without it. */
static enum esp_status await_switch(const struct switch_stage *stage, struct error *err)
{
	uint64_t until_ns = clock_now_ns() + LISTEN_PATIENCE;
	const struct timespec nap = {.tv_nsec = 10 * NS_PER_MS};

	while (!has_begun(stage)) {
		if (clock_now_ns() > until_ns)
			return error_set(err, ESP_EIO, "the switch does not listen at %s", stage->address);
		nanosleep(&nap, NULL);
	}
	return ESP_OK;
}

static void find_gloo(struct switch_stage *stage)
{
	const char *end = strrchr(stage->self, '/');

	snprintf(stage->gloo, sizeof(stage->gloo), "%.*s/peers/allreduce.gloo", (int)(end - stage->self), stage->self);
	if (access(stage->gloo, X_OK) != 0)
		stage->gloo[0] = '\0';
}

enum esp_status bench_switch_stage_open(struct switch_stage *stage, const struct switch_stage_config *config,
                                        struct error *err)
{
	*stage = (struct switch_stage){.config = *config};
	ssize_t length = readlink("/proc/self/exe", stage->self, sizeof(stage->self) - 1);
	enum esp_status status = ESP_OK;

	if (length <= 0 || length == (ssize_t)sizeof(stage->self) - 1)
		return error_set(err, ESP_EIO, "cannot find out which program this is");
	find_gloo(stage);
	snprintf(stage->log, sizeof(stage->log), "/tmp/espalier-bench-switch-%d.log", (int)getpid());
	snprintf(stage->address, sizeof(stage->address), "127.0.0.1:%u", LOOPBACK_PORT + (unsigned)getpid() % 1000);
	if (config->rate > 0)
		status = make_lab(stage, err);
	else
		status = start_switch(stage, err);
	if (status == ESP_OK && config->rate == 0)
		status = await_switch(stage, err);
	if (status != ESP_OK)
		bench_switch_stage_close(stage);
	return status;
}

void bench_switch_stage_close(struct switch_stage *stage)
{
	struct child_words words;
	struct error err;

	bench_child_stop(stage->server);
	stage->server = 0;
	if (stage->lab[0]) {
		begin(stage, &words);
		add_all(&words, (const char *const[]){"lab", "down", "--name", stage->lab, NULL});
		(void)do_command(&words, &err);
		stage->lab[0] = '\0';
	}
	if (stage->log[0])
		unlink(stage->log);
	stage->log[0] = '\0';
}

/* ---- runs ---- */

/* The value behind a key of espalier bench --json. */
static bool read_number(const char *text, const char *key, double *out)
{
	const char *at = strstr(text, key);
	char *end;

	if (!at)
		return false;
	*out = strtod(at + strlen(key), &end);
	return end != at + strlen(key);
}

static enum esp_status read_result(const char *text, struct switch_result *out, struct error *err)
{
	const char *at = strstr(text, "\"in_place\": {"), *plan = strstr(text, "\"plan\": \"");
	double wrong;

	if (!at || !plan || !read_number(at, "\"p50\": ", &out->seconds) || !read_number(at, "\"min\": ", &out->least) ||
	    !read_number(at, "\"max\": ", &out->most) || !read_number(at, "\"nwrong\": ", &wrong))
		return error_set(err, ESP_EIO, "espalier bench printed no times");
	out->seconds /= 1e6;
	out->least /= 1e6;
	out->most /= 1e6;
	out->wrong = (uint64_t)wrong;
	out->went_through = strncmp(plan, "\"plan\": \"switch\"", 16) == 0;
	return ESP_OK;
}

static enum esp_status run_gloo(const struct switch_stage *stage, const char *variant, struct switch_result *out,
                                struct error *err)
{
	struct hub_stage hub = {.config = {.workers = stage->config.workers, .iterations = stage->config.iterations,
	                                   .seconds = stage->config.seconds}};
	struct hub_contest_result result;

	memcpy(hub.self, stage->self, sizeof(hub.self));
	memcpy(hub.lab, stage->lab, sizeof(hub.lab));
	memcpy(hub.gloo, stage->gloo, sizeof(hub.gloo));
	enum esp_status status = bench_hub_stage_run_gloo(&hub, variant, stage->config.bytes, &result, err);
	if (status == ESP_OK)
		*out = (struct switch_result){result.seconds, result.least, result.most, result.wrong, false};
	return status;
}

enum esp_status bench_switch_stage_run(const struct switch_stage *stage, const struct switch_way *way,
                                       struct switch_result *out, struct error *err)
{
	char workers[16], iterations[16], size[24], variable[96], numerics[40], *text;
	struct child_words words;

	if (way->gloo)
		return run_gloo(stage, way->gloo, out, err);
	snprintf(workers, sizeof(workers), "%u", stage->config.workers);
	snprintf(iterations, sizeof(iterations), "%u", stage->config.iterations);
	snprintf(size, sizeof(size), "%" PRIu64, stage->config.bytes);
	snprintf(variable, sizeof(variable), "ESP_SWITCH=%s", way->is_switched ? stage->address : "");
	snprintf(numerics, sizeof(numerics), "ESP_NUMERICS=%s", way->numerics);
	begin(stage, &words);
	if (stage->lab[0])
		add_all(&words, (const char *const[]){"lab", "run", "--name", stage->lab, NULL});
	else
		bench_child_add(&words, "run");
	add_all(&words, (const char *const[]){"-n", workers, "--no-prefix", "--env", variable, "--env", numerics, "--",
	                                      stage->self, "bench", "allreduce", "--size", size, "--type", way->type,
	                                      "--numerics", way->numerics, "--iters", iterations, "--in-place", "--json",
	                                      "--plan", way->plan, NULL});
	enum esp_status status = bench_child_run(&words, stage->config.seconds, &text, err);
	if (status != ESP_OK)
		return status;
	status = read_result(text, out, err);
	free(text);
	return status;
}
