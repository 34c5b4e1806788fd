/*
 * hub_program.c - workers of a parameter hub for hub_cli_test.py.
 *
 * hub_program WHAT [ARGUMENT]: a worker of the job whose ticket ESP_HUB_TICKET names.
 *     rounds N       N rounds of SGD with lr 1 over three tensors; every result is checked; prints "good"
 *     die N          the same, but worker 1 kills itself after N rounds
 *     leave N        the same, but worker 1 leaves after N rounds
 *     absent         worker 1 pushes nothing until another worker has given up
 *     endless        rounds until an error; prints "ready" after the first one
 *     count N        worker 1 declares N elements, the others 4
 *     elements N     all workers declare N elements
 *     set VALUES     worker 1 sets other values of the optimizer than the others
 *     bits N         N rounds whose gradients have many bits, other values of the optimizer after half of them, and a
 *                    pull; prints a digest of the weights
 *     nan            worker 1 pushes NaN and infinity
 * hub_program jobs THREADS TICKET...: every ticket is a job of two workers, run by two threads; THREADS jobs at a time.
 */
#include <espalier/hub.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TENSORS 3u

static const uint64_t counts[TENSORS] = {5, 20000, 1}; /* one has several chunks */

struct model {
	float *weights[TENSORS], *gradients[TENSORS];
};

static int fail(const char *what)
{
	struct esp_error error = ESP_ERROR_INIT;

	esp_last_error(&error);
	fprintf(stderr, "%s: %s\n", what, error.text);
	return 1;
}

static void model_open(struct model *model)
{
	for (uint32_t t = 0; t < TENSORS; t++) {
		model->weights[t] = calloc(counts[t], sizeof(float));
		model->gradients[t] = calloc(counts[t], sizeof(float));
	}
}

static void model_close(struct model *model)
{
	for (uint32_t t = 0; t < TENSORS; t++) {
		free(model->weights[t]);
		free(model->gradients[t]);
	}
}

/* Worker 0's weights are 1 to 1000, again and again, times scale. */
static enum esp_status declare(struct esp_hub *hub, struct model *model, uint32_t scale)
{
	static const char *const names[TENSORS] = {"bias", "matrix", "scalar"};
	struct esp_hub_tensor tensors[TENSORS];

	for (uint32_t t = 0; t < TENSORS; t++) {
		tensors[t] = (struct esp_hub_tensor){.struct_size = sizeof(tensors[t]), .name = names[t], .count = counts[t],
		                                     .type = ESP_F32, .weights = model->weights[t]};
		for (uint64_t i = 0; i < counts[t] && esp_hub_worker(hub) == 0; i++)
			model->weights[t][i] = (float)((i % 1000 + 1) * scale);
	}
	return esp_hub_init(hub, tensors, TENSORS);
}

/* The mean of the gradients worker + 1 is (workers + 1) / 2; with lr 1 each round subtracts it. Small numbers are exact. */
static bool is_right(const struct esp_hub *hub, const struct model *model, uint32_t scale, uint32_t rounds)
{
	float mean = (float)(esp_hub_workers(hub) + 1) / 2;

	for (uint32_t t = 0; t < TENSORS; t++) {
		for (uint64_t i = 0; i < counts[t]; i++) {
			float expected = (float)((i % 1000 + 1) * scale) - (float)rounds * mean;

			if (model->weights[t][i] == expected)
				continue;
			fprintf(stderr, "tensor %u, element %" PRIu64 ": %g, not %g\n", t, i, (double)model->weights[t][i], (double)expected);
			return false;
		}
	}
	return true;
}

/* All tensors in the background, as a training loop does it. */
static enum esp_status round_once(struct esp_hub *hub, struct model *model)
{
	struct esp_work *works[TENSORS];
	enum esp_status status = ESP_OK;
	uint32_t started = 0;

	for (uint32_t t = 0; t < TENSORS && status == ESP_OK; t++) {
		struct esp_hub_call call = ESP_HUB_CALL_INIT;

		call.kind = ESP_HUB_PUSHPULL;
		call.tensor = t;
		call.gradient = model->gradients[t];
		call.weights = model->weights[t];
		for (uint64_t i = 0; i < counts[t]; i++)
			model->gradients[t][i] = (float)(esp_hub_worker(hub) + 1);
		status = esp_hub_start(hub, &call, &works[t]);
		started += status == ESP_OK;
	}
	for (uint32_t t = 0; t < started; t++) {
		enum esp_status ended = esp_wait(works[t], -1);

		status = status == ESP_OK ? ended : status;
		esp_work_free(works[t]);
	}
	return status;
}

static int run_rounds(struct esp_hub *hub, struct model *model, const char *what, uint32_t rounds)
{
	bool is_other = esp_hub_worker(hub) == 1;

	for (uint32_t r = 0; r < rounds || strcmp(what, "rounds") != 0; r++) {
		if (is_other && r == rounds && strcmp(what, "die") == 0)
			raise(SIGKILL);
		if (is_other && r == rounds && strcmp(what, "leave") == 0)
			return 0;
		if (round_once(hub, model) != ESP_OK)
			return fail("round");
		if (r == 0 && strcmp(what, "endless") == 0) {
			puts("ready");
			fflush(stdout);
		}
	}
	if (!is_right(hub, model, 1, rounds))
		return 1;
	puts("good");
	return 0;
}

/* Worker 1 is there, and pushes nothing. */
static int run_absent(struct esp_hub *hub, struct model *model)
{
	struct esp_hub_stats stats = ESP_HUB_STATS_INIT;

	if (esp_hub_worker(hub) != 1)
		return round_once(hub, model) == ESP_OK ? 0 : fail("round");
	while (esp_hub_pull(hub, 2, model->weights[2]) == ESP_OK && esp_hub_get_stats(hub, &stats) == ESP_OK)
		usleep(1000);
	return fail("pull");
}

static int run_set(struct esp_hub *hub, struct model *model, const char *values)
{
	uint64_t version;

	if (esp_hub_worker(hub) == 1 && esp_hub_set(hub, 0, values, &version) != ESP_OK)
		return fail("set");
	return round_once(hub, model) == ESP_OK ? 0 : fail("round");
}

/* Rounds started one behind the other, each with values of its own. Worker 1 waits for the end of its input first. */
static int run_ahead(struct esp_hub *hub)
{
	enum { AHEAD = 8 };
	static float gradients[AHEAD][5], weights[AHEAD][5];
	struct esp_work *works[AHEAD];
	char byte, value[32];

	while (esp_hub_worker(hub) == 1 && read(0, &byte, 1) > 0) {
	}
	for (uint32_t r = 0; r < AHEAD; r++) {
		struct esp_hub_call call = ESP_HUB_CALL_INIT;

		call.kind = ESP_HUB_PUSHPULL;
		call.gradient = gradients[r];
		call.weights = weights[r];
		for (uint32_t i = 0; i < 5; i++)
			gradients[r][i] = (float)(r + i);
		snprintf(value, sizeof(value), "lr=%u", r + 1);
		if (esp_hub_set(hub, 0, value, NULL) != ESP_OK || esp_hub_start(hub, &call, &works[r]) != ESP_OK)
			return fail("start");
	}
	puts("started");
	fflush(stdout);
	for (uint32_t r = 0; r < AHEAD; r++) {
		if (esp_wait(works[r], -1) != ESP_OK)
			return fail("round");
		esp_work_free(works[r]);
		printf("%g ", (double)weights[r][4]);
	}
	puts("good");
	return 0;
}

static int run_nan(struct esp_hub *hub, struct model *model)
{
	float gradients[5] = {NAN, INFINITY, 0, 1, -0.0f};

	if (esp_hub_worker(hub) != 1)
		memset(gradients, 0, sizeof(gradients));
	if (esp_hub_pushpull(hub, 0, gradients, model->weights[0]) != ESP_OK)
		return fail("pushpull");
	const float *w = model->weights[0];
	if (!isnan(w[0]) || !isinf(w[1]) || w[1] > 0 || w[2] != 3 || !(w[3] < 4) || w[4] != 5)
		return 1;
	puts("good");
	return 0;
}

/* FNV-1a. */
static uint64_t digest(uint64_t digest, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		digest = (digest ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
	return digest;
}

static int run_bits(struct esp_hub *hub, struct model *model, uint32_t rounds)
{
	uint64_t found = UINT64_C(0xcbf29ce484222325);

	for (uint32_t r = 0; r < rounds; r++) {
		if (r == rounds / 2 && esp_hub_set(hub, 0, "lr=0.25", NULL) != ESP_OK)
			return fail("set");
		for (uint32_t t = 0; t < TENSORS; t++) {
			for (uint64_t i = 0; i < counts[t]; i++)
				model->gradients[t][i] = sinf((float)(i + 1) * (float)(r + 1) + (float)esp_hub_worker(hub));
			if (esp_hub_pushpull(hub, t, model->gradients[t], model->weights[t]) != ESP_OK)
				return fail("round");
			found = digest(found, model->weights[t], counts[t] * sizeof(float));
		}
	}
	for (uint32_t t = 0; t < TENSORS; t++) {
		memcpy(model->gradients[t], model->weights[t], counts[t] * sizeof(float));
		memset(model->weights[t], 0, counts[t] * sizeof(float));
		if (esp_hub_pull(hub, t, model->weights[t]) != ESP_OK ||
		    memcmp(model->gradients[t], model->weights[t], counts[t] * sizeof(float)) != 0)
			return fail("pull");
	}
	printf("bits %016" PRIx64 "\n", found);
	return 0;
}

static int run_elements(struct esp_hub *hub, uint64_t elements)
{
	struct esp_hub_tensor tensor = {.struct_size = sizeof(tensor), .name = "large", .count = elements, .type = ESP_F32};

	if (esp_hub_init(hub, &tensor, 1) != ESP_OK)
		return fail("init");
	if (elements == 0 && (esp_hub_push(hub, 0, NULL) != ESP_OK || esp_hub_pull(hub, 0, NULL) != ESP_OK))
		return fail("empty");
	puts("good");
	return 0;
}

static int run_worker(struct esp_hub *hub, const char *what, const char *argument)
{
	struct model model;
	int status;
	char byte;

	while (strcmp(what, "slow") == 0 && read(0, &byte, 1) > 0) {
	}
	if (strcmp(what, "elements") == 0)
		return run_elements(hub, strtoull(argument, NULL, 10));
	if (strcmp(what, "count") == 0)
		return run_elements(hub, esp_hub_worker(hub) == 1 ? strtoull(argument, NULL, 10) : 4);
	model_open(&model);
	if (declare(hub, &model, 1) != ESP_OK)
		status = fail("init");
	else if (strcmp(what, "absent") == 0)
		status = run_absent(hub, &model);
	else if (strcmp(what, "set") == 0)
		status = run_set(hub, &model, argument);
	else if (strcmp(what, "bits") == 0)
		status = run_bits(hub, &model, (uint32_t)atoi(argument));
	else if (strcmp(what, "ahead") == 0)
		status = run_ahead(hub);
	else if (strcmp(what, "nan") == 0)
		status = run_nan(hub, &model);
	else
		status = run_rounds(hub, &model, what, (uint32_t)atoi(argument));
	model_close(&model);
	return status;
}

/* ---- many jobs ---- */

struct worker {
	pthread_t thread;
	const char *ticket;
	uint32_t number;
	uint32_t scale; /* of the job: weights of no other */
	bool is_good;
};

static bool work(struct worker *worker, struct esp_hub *hub, struct model *model)
{
	if (declare(hub, model, worker->scale) != ESP_OK)
		return fail("init"), false;
	for (uint32_t r = 1; r <= 3; r++) {
		if (round_once(hub, model) != ESP_OK)
			return fail("round"), false;
		if (!is_right(hub, model, worker->scale, r))
			return false;
	}
	return true;
}

static void *work_main(void *argument)
{
	struct worker *worker = argument;
	struct esp_hub_options options = ESP_HUB_OPTIONS_INIT;
	struct esp_hub *hub;
	struct model model;

	options.ticket = worker->ticket;
	options.worker = worker->number;
	options.workers = 2;
	if (esp_hub_connect(&options, &hub) != ESP_OK) {
		fail("connect");
		return NULL;
	}
	model_open(&model);
	worker->is_good = work(worker, hub, &model);
	model_close(&model);
	worker->is_good &= esp_hub_close(hub) == ESP_OK;
	return NULL;
}

static int run_jobs(uint32_t at_once, char **tickets, uint32_t count)
{
	struct worker *workers = calloc(2 * (size_t)count, sizeof(*workers));
	bool is_good = true;

	for (uint32_t first = 0; first < count; first += at_once) {
		uint32_t last = first + at_once < count ? first + at_once : count;

		for (uint32_t i = 2 * first; i < 2 * last; i++) {
			workers[i] = (struct worker){.ticket = tickets[i / 2], .number = i % 2, .scale = i / 2 + 1};
			pthread_create(&workers[i].thread, NULL, work_main, &workers[i]);
		}
		for (uint32_t i = 2 * first; i < 2 * last; i++) {
			pthread_join(workers[i].thread, NULL);
			is_good &= workers[i].is_good;
		}
	}
	free(workers);
	puts(is_good ? "good" : "bad");
	return !is_good;
}

int main(int argc, char **argv)
{
	struct esp_hub *hub;

	if (argc > 3 && strcmp(argv[1], "jobs") == 0)
		return run_jobs((uint32_t)atoi(argv[2]), argv + 3, (uint32_t)argc - 3);
	if (esp_hub_connect(NULL, &hub) != ESP_OK)
		return fail("connect");
	int status = run_worker(hub, argc > 1 ? argv[1] : "rounds", argc > 2 ? argv[2] : "1");
	if (esp_hub_close(hub) != ESP_OK && status == 0)
		status = fail("close");
	return status;
}
