/*
 * hub_host_program.c - workers of a parameter hub that share a host, for hub_host_test.py.
 *
 * hub_host_program WHAT SHARES [WORKER]: a worker of the job whose ticket ESP_HUB_TICKET names; the optimizer is "avg". SHARES:
 * "0,2,3", the workers that share memory; the others push by themselves, as if each had a host of its own.
 *     bits     rounds whose weights have to have the bits of sums in the stated order, and bytes as many as stated
 *     read     the same, and the hub reads the gradients of the set
 *     map      the same, but gradients and weights lie in shared memory
 *     die      WORKER kills itself after a round
 *     leave    WORKER leaves after a round
 *     absent   WORKER pushes nothing until the others have given up
 *     late     WORKER declares its model when its standard input ends
 */
#include <espalier/hub.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TENSORS 4u
#define ROUNDS 5u
#define HEADS 0.005 /* of the model: the most that goes beside it, each way */

static const uint64_t counts[TENSORS] = {5, 200000, 0, 33};
static uint64_t set; /* the workers that share memory */

struct model {
	float *weights[TENSORS], *gradients[TENSORS];
	const float *map[TENSORS];
	float *place[TENSORS]; /* of gradients */
};

static int fail(const char *what)
{
	struct esp_error error = ESP_ERROR_INIT;

	esp_last_error(&error);
	fprintf(stderr, "%s: %s\n", what, error.text);
	return 1;
}

static uint64_t read_set(const char *text)
{
	uint64_t workers = 0;

	for (char *at = (char *)(uintptr_t)text; *at; at += *at == ',')
		workers |= UINT64_C(1) << strtoul(at, &at, 10);
	return workers;
}

/* Numbers whose sum depends on the order. */
static float gradient(uint32_t worker, uint32_t round, uint32_t tensor, uint64_t i)
{
	uint64_t hash = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (worker * 977u + round * 131u + tensor + 1u);

	hash ^= hash >> 29;
	hash *= UINT64_C(0xbf58476d1ce4e5b9);
	return (float)(int32_t)(hash >> 32) * (hash & 1 ? 1e-9f : 1e-5f);
}

/* The sum of the set stands in the place of its lowest worker. */
static float expected(uint32_t workers, uint32_t round, uint32_t tensor, uint64_t i)
{
	float sum = -0.0f;

	for (uint32_t first = 0; first < workers; first++) {
		float term = gradient(first, round, tensor, i);
		bool is_shared = set >> first & 1;

		if (is_shared && (set & ((UINT64_C(1) << first) - 1)))
			continue;
		for (uint32_t other = first + 1; is_shared && other < workers; other++)
			term += set >> other & 1 ? gradient(other, round, tensor, i) : -0.0f;
		sum += term;
	}
	return sum / (float)workers;
}

static bool is_right(const struct esp_hub *hub, const struct model *model, uint32_t round)
{
	for (uint32_t t = 0; t < TENSORS; t++) {
		const float *weights = model->map[t] ? model->map[t] : model->weights[t];

		for (uint64_t i = 0; i < counts[t]; i++) {
			float want = expected(esp_hub_workers(hub), round, t, i);

			if (memcmp(&weights[i], &want, sizeof(want)) == 0)
				continue;
			fprintf(stderr, "round %u, tensor %u, element %" PRIu64 ": %.9g, not %.9g\n", round, t, i, (double)weights[i],
			        (double)want);
			return false;
		}
	}
	return true;
}

static enum esp_status declare(struct esp_hub *hub, struct model *model)
{
	static const char *const names[TENSORS] = {"bias", "matrix", "nothing", "scalar"};
	struct esp_hub_tensor tensors[TENSORS];

	for (uint32_t t = 0; t < TENSORS; t++) {
		model->weights[t] = calloc(counts[t] + 1, sizeof(float));
		model->gradients[t] = model->place[t] = calloc(counts[t] + 1, sizeof(float));
		for (uint64_t i = 0; i < counts[t] && esp_hub_worker(hub) == 0; i++)
			model->weights[t][i] = (float)i;
		/* Some workers do not want the first weights. */
		tensors[t] = (struct esp_hub_tensor){.struct_size = sizeof(tensors[t]), .name = names[t], .count = counts[t],
		                                     .type = ESP_F32, .group = t % 2,
		                                     .weights = esp_hub_worker(hub) % 3 == 2 ? NULL : model->weights[t]};
	}
	return esp_hub_init(hub, tensors, TENSORS);
}

static enum esp_status round_once(struct esp_hub *hub, struct model *model, uint32_t round)
{
	struct esp_work *works[TENSORS] = {NULL};
	enum esp_status status = ESP_OK;
	uint32_t worker = esp_hub_worker(hub);

	for (uint32_t n = 0; n < TENSORS && status == ESP_OK; n++) {
		struct esp_hub_call call = ESP_HUB_CALL_INIT;
		uint32_t t = (n + worker + round) % TENSORS; /* each worker in an order of its own */

		call.kind = model->map[t] ? ESP_HUB_PUSH : ESP_HUB_PUSHPULL;
		call.tensor = t;
		call.gradient = model->place[t];
		call.weights = model->map[t] ? NULL : model->weights[t];
		for (uint64_t i = 0; i < counts[t]; i++)
			model->place[t][i] = gradient(worker, round, t, i);
		status = esp_hub_start(hub, &call, &works[n]);
	}
	for (uint32_t n = 0; n < TENSORS; n++) {
		enum esp_status ended = works[n] ? esp_wait(works[n], -1) : ESP_OK;

		status = status == ESP_OK ? ended : status;
		esp_work_free(works[n]);
	}
	return status;
}

/* A worker that pushes carries the model once each way and round; a worker for which another one pushes nothing of it. */
static bool has_stated_bytes(struct esp_hub *hub, bool is_read)
{
	struct esp_hub_stats stats = ESP_HUB_STATS_INIT;
	uint32_t worker = esp_hub_worker(hub);
	bool is_shared = set >> worker & 1, pushes = !is_shared || !(set & ((UINT64_C(1) << worker) - 1));
	is_read &= is_shared && (set & (set - 1)) != 0; /* one worker alone is no set */
	double model = 0, first = worker == 0 ? 1 : 0; /* the first weights: worker 0 sends them */

	for (uint32_t t = 0; t < TENSORS; t++)
		model += (double)counts[t] * sizeof(float);
	if (esp_hub_get_stats(hub, &stats) != ESP_OK)
		return fail("stats"), false;
	double sent = (double)stats.sent_bytes / model, received = (double)stats.received_bytes / model;
	double rounds = pushes && !is_read ? ROUNDS : 0, slack = (ROUNDS + 1) * HEADS;
	bool is_good = sent >= rounds + first && sent <= rounds + first + slack && received <= rounds + 1 - first + slack &&
	               received >= rounds;
	if (!is_good)
		fprintf(stderr, "worker %u sent %.4f models and received %.4f in %u rounds\n", worker, sent, received, ROUNDS);
	return is_good;
}

static int run_bits(struct esp_hub *hub, struct model *model, bool maps, bool is_read)
{
	const void *weights;
	void *gradient;

	for (uint32_t t = 0; t < TENSORS && maps; t++) {
		enum esp_status status = esp_hub_map(hub, t, &weights);
		bool is_shared = set >> esp_hub_worker(hub) & 1;

		if (status != (is_shared ? ESP_OK : ESP_EUNSUPPORTED))
			return fail("map");
		model->map[t] = is_shared ? weights : NULL;
		if (is_shared && esp_hub_gradient(hub, t, &gradient) != ESP_OK)
			return fail("gradient");
		model->place[t] = is_shared ? gradient : model->gradients[t];
		for (uint64_t i = 0; i < counts[t] && is_shared; i++) {
			if (model->map[t][i] < (float)i || model->map[t][i] > (float)i)
				return fail("first weights");
		}
	}
	for (uint32_t round = 0; round < ROUNDS; round++) {
		if (round_once(hub, model, round) != ESP_OK)
			return fail("round");
		if (!is_right(hub, model, round))
			return 1;
	}
	if (!maps && !has_stated_bytes(hub, is_read))
		return 1;
	puts("good");
	return 0;
}

static int run_failing(struct esp_hub *hub, struct model *model, const char *what, uint32_t culprit)
{
	bool is_culprit = esp_hub_worker(hub) == culprit;

	if (round_once(hub, model, 0) != ESP_OK)
		return fail("round");
	if (is_culprit && strcmp(what, "die") == 0)
		raise(SIGKILL);
	if (is_culprit && strcmp(what, "leave") == 0)
		return 0;
	while (is_culprit && esp_hub_pull(hub, 0, model->weights[0]) == ESP_OK)
		usleep(1000);
	return round_once(hub, model, 1) == ESP_OK ? 0 : fail("round");
}

static int run_worker(struct esp_hub *hub, const char *what, uint32_t worker)
{
	struct model model = {0};
	char byte;

	while (strcmp(what, "late") == 0 && esp_hub_worker(hub) == worker && read(0, &byte, 1) > 0) {
	}
	int status = declare(hub, &model) != ESP_OK ? fail("init")
	             : strcmp(what, "bits") == 0 || strcmp(what, "map") == 0 || strcmp(what, "read") == 0 ||
	                   strcmp(what, "late") == 0
	                 ? run_bits(hub, &model, what[0] == 'm', what[0] != 'b')
	                 : run_failing(hub, &model, what, worker);
	for (uint32_t t = 0; t < TENSORS; t++) {
		free(model.weights[t]);
		free(model.gradients[t]);
	}
	return status;
}

int main(int argc, char **argv)
{
	static const char *const tcp[] = {"transport=tcp", NULL};
	struct esp_hub_options options = ESP_HUB_OPTIONS_INIT;
	const char *rank = getenv("ESP_RANK");
	struct esp_hub *hub;

	if (argc < 3 || !rank)
		return 2;
	set = read_set(argv[2]);
	options.settings = set >> strtoul(rank, NULL, 10) & 1 ? NULL : tcp;
	if (esp_hub_connect(&options, &hub) != ESP_OK)
		return fail("connect");
	int status = run_worker(hub, argv[1], argc > 3 ? (uint32_t)atoi(argv[3]) : 0);
	if (esp_hub_close(hub) != ESP_OK && status == 0)
		status = fail("close");
	return status;
}
