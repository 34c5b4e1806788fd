#include "tools/bench/hub_stage.h"

#include <assert.h>
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/bench/child.h"

#define HUB_PORT 7700u
#define RESULT "hub_contest worker %" SCNu32 " seconds %lf least %lf most %lf optimizer %lf idle %lf wrong %" SCNu64
#define GLOO_SAMPLES_MOST 256u

/* ---- the hub and its job ---- */

static enum esp_status start_hub(struct hub_stage *stage, struct error *err)
{
	char key[RACK_PATH], ticket[RACK_PATH], log[RACK_PATH], workers[16];
	struct child_words words;

	bench_rack_path(&stage->rack, "hub.log", log);
	bench_rack_path(&stage->rack, "hub.key", key);
	bench_rack_path(&stage->rack, "job.ticket", ticket);
	snprintf(workers, sizeof(workers), "%u", stage->config.workers);
	bench_rack_begin(&stage->rack, &words, true);
	bench_child_add_all(&words, (const char *const[]){"hub", "--listen", stage->address, "--key-file", key, NULL});
	enum esp_status status = bench_child_start(&words, log, &stage->hub, err);
	if (status != ESP_OK)
		return status;
	bench_rack_begin(&stage->rack, &words, true);
	bench_child_add_all(&words,
	        (const char *const[]){"hub", "create", "bench", "--hub", stage->address, "--key-file", key, "--workers",
	                              workers, "--optimizer", stage->config.optimizer, "--ticket-file", ticket, NULL});
	status = bench_child_do(&words, RACK_SETUP_SECONDS, err);
	if (status != ESP_OK)
		bench_rack_show_log(&stage->rack, "hub.log");
	return status;
}

static enum esp_status find_free_port(struct hub_stage *stage, struct error *err)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is_known = fd >= 0 && bind(fd, (struct sockaddr *)&name, length) == 0 &&
	                getsockname(fd, (struct sockaddr *)&name, &length) == 0;

	if (fd >= 0)
		close(fd);
	snprintf(stage->address, sizeof(stage->address), "127.0.0.1:%u", ntohs(name.sin_port));
	return is_known ? ESP_OK : error_set(err, ESP_EIO, "no port of the loopback is free");
}

/* allreduce.gloo, where `make bench` has built it: beside this program. */
static void find_gloo(struct hub_stage *stage)
{
	const char *end = strrchr(stage->rack.self, '/');

	snprintf(stage->gloo, sizeof(stage->gloo), "%.*s/peers/allreduce.gloo", (int)(end - stage->rack.self), stage->rack.self);
	if (access(stage->gloo, X_OK) != 0)
		stage->gloo[0] = '\0';
}

static enum esp_status place(struct hub_stage *stage, struct error *err)
{
	const struct hub_stage_config *config = &stage->config;

	if (config->rate == 0)
		return find_free_port(stage, err);
	enum esp_status status = bench_rack_make_lab(&stage->rack, "benchhub", config->workers, config->rate,
	                                             (uint64_t)((double)config->rate * config->hub_links), err);
	snprintf(stage->address, sizeof(stage->address), "%s:%u", stage->rack.last_address, HUB_PORT);
	return status;
}

enum esp_status bench_hub_stage_open(struct hub_stage *stage, const struct hub_stage_config *config, struct error *err)
{
	*stage = (struct hub_stage){.config = *config};
	enum esp_status status = bench_rack_open(&stage->rack, err);

	if (status == ESP_OK) {
		find_gloo(stage);
		status = place(stage, err);
	}
	if (status == ESP_OK)
		status = start_hub(stage, err);
	if (status != ESP_OK)
		bench_hub_stage_close(stage);
	return status;
}

void bench_hub_stage_close(struct hub_stage *stage)
{
	bench_child_stop(stage->hub);
	stage->hub = 0;
	bench_rack_close(&stage->rack);
}

/* ---- runs ---- */

void bench_hub_stage_tell(const struct hub_contest_result *result)
{
	printf("hub_contest worker %" PRIu32 " seconds %.9f least %.9f most %.9f optimizer %.9f idle %.6f wrong %" PRIu64
	       "\n",
	       result->worker, result->seconds, result->least, result->most, result->optimizer_seconds, result->idle,
	       result->wrong);
}

/* Worker 0's times; the wrong elements of all. */
static enum esp_status read_results(const char *text, uint32_t workers, struct hub_contest_result *out,
                                    struct error *err)
{
	uint32_t found = 0;
	uint64_t wrong = 0;

	for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		struct hub_contest_result one;

		if (sscanf(line, RESULT, &one.worker, &one.seconds, &one.least, &one.most, &one.optimizer_seconds, &one.idle,
		           &one.wrong) != 7)
			continue;
		found++;
		wrong += one.wrong;
		if (one.worker == 0)
			*out = one;
	}
	if (found != workers)
		return error_set(err, ESP_EIO, "%u of %u workers told their times", found, workers);
	out->wrong = wrong;
	return ESP_OK;
}

enum esp_status bench_hub_stage_run(const struct hub_stage *stage, enum hub_way way, struct hub_contest_result *out,
                                    struct error *err)
{
	char workers[16], iterations[16], warmup[16], ticket[RACK_PATH], variable[RACK_PATH + 20], *text;
	struct child_words words;

	snprintf(workers, sizeof(workers), "%u", stage->config.workers);
	snprintf(iterations, sizeof(iterations), "%u", stage->config.iterations);
	snprintf(warmup, sizeof(warmup), "%u", stage->config.warmup);
	snprintf(variable, sizeof(variable), "ESP_HUB_TICKET=%s", bench_rack_path(&stage->rack, "job.ticket", ticket));
	if (way == HUB_WAY_LOOP)
		bench_rack_begin(&stage->rack, &words, false);
	else
		bench_rack_launch(&stage->rack, &words, workers, variable);
	if (way != HUB_WAY_LOOP)
		bench_child_add(&words, stage->rack.self);
	bench_child_add_all(&words,
	        (const char *const[]){"bench", "hub", "--as", hub_way_names[way], "--workers", workers, "--iters",
	                              iterations, "--warmup", warmup, "--optimizer", stage->config.optimizer, NULL});
	bench_child_add_all(&words, stage->config.model);
	enum esp_status status = bench_child_run(&words, stage->config.seconds, &text, err);
	if (status != ESP_OK)
		return status;
	status = read_results(text, way == HUB_WAY_LOOP ? 1 : stage->config.workers, out, err);
	free(text);
	return status;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* One line of JSON of contest.h: "samples_us": [..], "wrong": N. */
static enum esp_status read_gloo(const char *text, struct hub_contest_result *out, struct error *err)
{
	static const char samples_key[] = "\"samples_us\": [", wrong_key[] = "\"wrong\": ";
	const char *at = strstr(text, samples_key), *wrong = strstr(text, wrong_key);
	double samples[GLOO_SAMPLES_MOST];
	uint32_t count = 0;

	if (!at || !wrong)
		return error_set(err, ESP_EIO, "Gloo's program printed no samples");
	for (at += sizeof(samples_key) - 1; count < GLOO_SAMPLES_MOST && *at != ']' && *at != '\0'; at++) {
		char *end;
		samples[count] = strtod(at, &end) / 1e6;
		if (end == at)
			break;
		count++;
		at = end;
		if (*at != ',')
			break;
	}
	if (count == 0)
		return error_set(err, ESP_EIO, "Gloo's program printed no samples");
	qsort(samples, count, sizeof(samples[0]), compare);
	*out = (struct hub_contest_result){.seconds = samples[count / 2],
	                                   .least = samples[0],
	                                   .most = samples[count - 1],
	                                   .wrong = strtoull(wrong + sizeof(wrong_key) - 1, NULL, 10)};
	return ESP_OK;
}

enum esp_status bench_hub_stage_run_gloo(const struct hub_stage *stage, const char *variant, uint64_t bytes,
                                         struct hub_contest_result *out, struct error *err)
{
	char folder[] = "/tmp/espalier-gloo-XXXXXX", variable[64], workers[16], size[24], iterations[16], *text;
	struct child_words words = {.count = 0}, remove = {.count = 0};

	assert(stage->gloo[0]);
	if (!mkdtemp(folder))
		return error_set(err, ESP_EIO, "cannot make a temporary folder");
	snprintf(variable, sizeof(variable), "GLOO_FOLDER=%s", folder);
	snprintf(workers, sizeof(workers), "%u", stage->config.workers);
	snprintf(size, sizeof(size), "%" PRIu64, bytes / 4 * 4);
	snprintf(iterations, sizeof(iterations), "%u", stage->config.iterations);
	if (stage->rack.lab[0])
		bench_rack_launch(&stage->rack, &words, workers, variable);
	bench_child_add(&words, stage->gloo);
	bench_child_add_all(&words, (const char *const[]){"--ranks", workers, "--sizes", size, "--seconds", "0.001", "--iters",
	                                      iterations, "--in-place", "--peer", "gloo", "--variant", variant, NULL});
	enum esp_status status = bench_child_run(&words, stage->config.seconds, &text, err);
	if (status == ESP_OK) {
		status = read_gloo(text, out, err);
		free(text);
	}
	struct error ignored;
	bench_child_add_all(&remove, (const char *const[]){"rm", "-rf", folder, NULL});
	(void)!bench_child_do(&remove, RACK_SETUP_SECONDS, &ignored);
	return status;
}
