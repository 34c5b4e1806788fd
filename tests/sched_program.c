/*
 * sched_program.c - workers of an asynchronous job for sched_cli_test.py.
 *
 * sched_program WHAT [ARGUMENT [ELEMENTS [MS]]]: a worker of the job whose ticket ESP_HUB_TICKET names; steps compute
 * for MS. The optimizer is SGD with lr 1 and every gradient is 1, so weights tell their version; every read and every
 * result is checked. Prints a line of counts.
 *
 *     until N      updates until the model has version N
 *     uneven N     the same, and the last worker's steps take five times as long
 *     slow N       the same, but the last worker offers each of its updates when it is too late, and checks that no
 *                  byte of it is sent
 *     die N        the same, but worker 1 kills itself after some updates
 *     ahead N      the same with two updates in flight: a thread gives one and reads while the next one is computed
 *     claim N      the same, but the last worker soon claims a version that there is not yet
 *     file PATH    updates until there is such a file; prints "ready" after the first one
 *     elements N   two updates of a model of N elements
 *     misuse       calls that are refused
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
#define BASE 1000000.0f
#define MARGIN 8u     /* versions that the scheduler may not have heard of */
#define DIES_AFTER 10u

struct worker {
	struct esp_hub *hub;
	uint64_t counts[TENSORS];
	float *weights[TENSORS], *gradients[TENSORS];
	uint64_t from; /* of the update that a thread gives */
	uint64_t step_ms; /* that a step computes */
	uint64_t version, most; /* of the model; the greatest that a weight has told */
	uint64_t fates[ESP_HUB_LATE_AT_HUB + 1], scheduled, reads;
};

static int fail(const char *what)
{
	struct esp_error error = ESP_ERROR_INIT;

	esp_last_error(&error);
	fprintf(stderr, "%s: %s\n", what, error.text);
	exit(1);
}

static void check(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	exit(1);
}

static void begin(struct worker *worker, uint64_t elements)
{
	static const char *const names[TENSORS] = {"bias", "matrix", "empty"};
	struct esp_hub_tensor tensors[TENSORS];

	*worker = (struct worker){.counts = {5, elements, 0}};
	if (esp_hub_connect(NULL, &worker->hub) != ESP_OK)
		fail("connect");
	for (uint32_t t = 0; t < TENSORS; t++) {
		worker->weights[t] = calloc(worker->counts[t] + 1, sizeof(float));
		worker->gradients[t] = calloc(worker->counts[t] + 1, sizeof(float));
		for (uint64_t i = 0; i < worker->counts[t]; i++) {
			worker->weights[t][i] = BASE;
			worker->gradients[t][i] = 1;
		}
		tensors[t] = (struct esp_hub_tensor){.struct_size = sizeof(tensors[t]),
		                                     .name = names[t],
		                                     .count = worker->counts[t],
		                                     .type = ESP_F32,
		                                     .weights = worker->weights[t]};
	}
	if (esp_hub_init(worker->hub, tensors, TENSORS) != ESP_OK)
		fail("init");
}

/* Each weight tells a version, none older than the model's. */
static void read_model(struct worker *worker)
{
	uint64_t before = worker->version;

	if (esp_hub_model(worker->hub, (void *const *)worker->weights, &worker->version) != ESP_OK)
		fail("model");
	worker->reads++;
	check(worker->version >= before, "versions only grow");
	for (uint32_t t = 0; t < TENSORS; t++) {
		for (uint64_t i = 0; i < worker->counts[t]; i++) {
			float version = BASE - worker->weights[t][i];

			check(version == floorf(version) && version >= (float)worker->version,
			      "a weight has a version of the model");
			worker->most = version > (float)worker->most ? (uint64_t)version : worker->most;
		}
	}
}

static struct esp_hub_result update(struct worker *worker, uint64_t from)
{
	const struct esp_hub_update given = {.struct_size = sizeof(given),
	                                     .gradients = (const void *const *)worker->gradients,
	                                     .computed_from = from,
	                                     .norm = 1};
	struct esp_hub_result result = ESP_HUB_RESULT_INIT;

	if (esp_hub_update(worker->hub, &given, &result) != ESP_OK)
		fail("update");
	worker->fates[result.fate]++;
	worker->scheduled += result.position > 0;
	if (result.fate == ESP_HUB_APPLIED) {
		check(result.version - from == result.delay,
		      "the delay is the version after applying minus the one computed from");
		check(result.delay >= 1 && result.delay <= esp_hub_delay_bound(worker->hub), "the delay is within the bound");
	}
	return result;
}

static uint64_t sent_bytes(struct worker *worker)
{
	struct esp_hub_stats stats = ESP_HUB_STATS_INIT;

	read_model(worker);
	if (esp_hub_get_stats(worker->hub, &stats) != ESP_OK)
		fail("stats");
	return stats.sent_bytes;
}

/* An update whose deadline has passed: the scheduler has it dropped here. */
static void be_late(struct worker *worker, uint64_t target)
{
	uint64_t from, before;

	read_model(worker);
	from = worker->version;
	while (worker->version < from + esp_hub_delay_bound(worker->hub) + MARGIN && worker->version < target)
		read_model(worker);
	if (worker->version >= target)
		return;
	before = sent_bytes(worker);
	struct esp_hub_result result = update(worker, from);
	check(result.fate == ESP_HUB_LATE_AT_SOURCE && result.delay > esp_hub_delay_bound(worker->hub),
	      "a late update is dropped at its source");
	check(sent_bytes(worker) - before < worker->counts[1], "no byte of it is sent");
}

static void end(struct worker *worker)
{
	struct esp_hub_stats stats = ESP_HUB_STATS_INIT;

	if (esp_hub_get_stats(worker->hub, &stats) != ESP_OK)
		fail("stats");
	printf("worker %u: applied %" PRIu64 " source %" PRIu64 " offer %" PRIu64 " hub %" PRIu64 " scheduled %" PRIu64
	       " version %" PRIu64 " sent %" PRIu64 " weights %" PRIu64 " reads %" PRIu64 " received %" PRIu64 "\n",
	       esp_hub_worker(worker->hub), worker->fates[ESP_HUB_APPLIED], worker->fates[ESP_HUB_LATE_AT_SOURCE],
	       worker->fates[ESP_HUB_LATE_AT_OFFER], worker->fates[ESP_HUB_LATE_AT_HUB], worker->scheduled,
	       worker->version, stats.sent_bytes, worker->most, worker->reads, stats.received_bytes);
	esp_hub_close(worker->hub);
	for (uint32_t i = 0; i < TENSORS; i++) {
		free(worker->weights[i]);
		free(worker->gradients[i]);
	}
}

static bool is_last(const struct worker *worker)
{
	return esp_hub_worker(worker->hub) + 1 == esp_hub_workers(worker->hub);
}

static void run_until(struct worker *worker, uint64_t target, bool is_slow, uint32_t dies_after)
{
	for (uint32_t i = 0;; i++) {
		read_model(worker);
		if (worker->version >= target)
			return;
		if (i == dies_after)
			raise(SIGKILL);
		usleep((useconds_t)(1000 * worker->step_ms));
		if (is_slow)
			be_late(worker, target);
		else
			(void)update(worker, worker->version);
	}
}

/* After some updates: one computed from a version that there is not yet. */
static void claim(struct worker *worker)
{
	struct esp_hub_result result = ESP_HUB_RESULT_INIT;

	run_until(worker, DIES_AFTER, false, UINT32_MAX);
	const struct esp_hub_update given = {.struct_size = sizeof(given),
	                                     .gradients = (const void *const *)worker->gradients,
	                                     .computed_from = worker->version + 1000000};
	check(esp_hub_update(worker->hub, &given, &result) == ESP_EPEER, "the hub ends a worker that claims a version");
}

static void *give_and_read(void *argument)
{
	struct worker *worker = argument;

	(void)update(worker, worker->from);
	read_model(worker);
	return NULL;
}

/* The gradients of the next update are of the version before: each update but the first has been computed meanwhile. */
static void run_ahead(struct worker *worker, uint64_t target)
{
	uint64_t computed_from;

	read_model(worker);
	for (computed_from = worker->version; worker->version < target;) {
		uint64_t newer = worker->version;
		pthread_t thread;

		worker->from = computed_from;
		check(pthread_create(&thread, NULL, give_and_read, worker) == 0, "a thread starts");
		usleep(2000); /* the next step computes */
		pthread_join(thread, NULL);
		computed_from = newer;
	}
}

static void run_until_file(struct worker *worker, const char *path)
{
	for (bool is_first = true; access(path, F_OK) != 0; is_first = false) {
		read_model(worker);
		(void)update(worker, worker->version);
		if (is_first) {
			puts("ready");
			fflush(stdout);
		}
	}
}

static void misuse(struct worker *worker)
{
	struct esp_hub_update given = {.struct_size = sizeof(given), .gradients = (const void *const *)worker->gradients};
	struct esp_hub_result result = ESP_HUB_RESULT_INIT;
	uint64_t version;

	check(esp_hub_update(NULL, &given, &result) == ESP_EINVAL &&
	          esp_hub_update(worker->hub, NULL, &result) == ESP_EINVAL &&
	          esp_hub_update(worker->hub, &given, NULL) == ESP_EINVAL,
	      "NULL is refused");
	given.norm = -1;
	check(esp_hub_update(worker->hub, &given, &result) == ESP_EINVAL, "a negative norm is refused");
	given.norm = (double)NAN;
	check(esp_hub_update(worker->hub, &given, &result) == ESP_EINVAL, "a norm that is no number is refused");
	given.norm = 0;
	given.leaves_ns = -1;
	check(esp_hub_update(worker->hub, &given, &result) == ESP_EINVAL, "a time to leave in the past is refused");
	given.leaves_ns = 0;
	given.gradients = NULL;
	check(esp_hub_update(worker->hub, &given, &result) == ESP_EINVAL, "no gradients are refused");
	check(esp_hub_model(worker->hub, NULL, &version) == ESP_EINVAL, "no weights are refused");
	check(esp_hub_push(worker->hub, 0, worker->gradients[0]) == ESP_EUNSUPPORTED, "a push is refused");
	check(esp_hub_set(worker->hub, 0, "lr=2", NULL) == ESP_EUNSUPPORTED, "another learning rate is refused");
	check(esp_hub_pull(worker->hub, 0, worker->weights[0]) == ESP_OK, "a pull is not");
	(void)update(worker, 0);
	given.gradients = (const void *const *)worker->gradients;
	given.computed_from = 1000;
	check(esp_hub_update(worker->hub, &given, &result) == ESP_EPEER, "a version that there is not yet ends the worker");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *argument = argc > 2 ? argv[2] : "";
	bool is_elements = strcmp(what, "elements") == 0;
	uint64_t number = strtoull(argument, NULL, 10);
	struct worker worker;

	begin(&worker, is_elements ? number : argc > 3 ? strtoull(argv[3], NULL, 10) : 20000);
	worker.step_ms = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
	if (strcmp(what, "until") == 0)
		run_until(&worker, number, false, UINT32_MAX);
	else if (strcmp(what, "uneven") == 0) {
		worker.step_ms = is_last(&worker) ? 25 : 5;
		run_until(&worker, number, false, UINT32_MAX);
	} else if (strcmp(what, "ahead") == 0)
		run_ahead(&worker, number);
	else if (strcmp(what, "slow") == 0)
		run_until(&worker, number, is_last(&worker), UINT32_MAX);
	else if (strcmp(what, "die") == 0)
		run_until(&worker, number, false, esp_hub_worker(worker.hub) == 1 ? DIES_AFTER : UINT32_MAX);
	else if (strcmp(what, "claim") == 0 && is_last(&worker))
		claim(&worker);
	else if (strcmp(what, "claim") == 0)
		run_until(&worker, number, false, UINT32_MAX);
	else if (strcmp(what, "file") == 0)
		run_until_file(&worker, argument);
	else if (is_elements)
		run_until(&worker, 2, false, UINT32_MAX);
	else
		misuse(&worker);
	end(&worker);
	return 0;
}
