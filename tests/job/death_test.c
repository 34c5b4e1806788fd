/*
 * death_test.c - ranks that are processes: one is killed or exits at a random moment, and all others learn which, and how.
 *
 * Also what a fork does to a job: nothing, and the child is told that it has none.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"
#include "job.h"

enum { RANKS_MOST = 8, VICTIM_STATUS = 77 };

struct trial {
	uint32_t size, victim;
	uint64_t count;        /* elements of the calls                      */
	uint64_t calls_before; /* that the victim completes                  */
	bool in_background;    /* the victim dies with a call under way      */
	bool exits;            /* it is not killed, but exits                */
	const char *transport;
	bool retunes;          /* calls run by two-level plans whose masters are moved meanwhile */
};

static void start_call(struct esp_group *world, const struct trial *trial, int32_t *data, struct esp_work **out)
{
	struct esp_call call = ESP_CALL_INIT;

	call.type = ESP_I32;
	call.count = trial->count;
	call.in = call.out = data;
	call.plan = trial->retunes ? "two-level" : NULL;
	OK(esp_start(world, &call, out));
}

static enum esp_status make_call(struct esp_group *world, const struct trial *trial, int32_t *data)
{
	struct esp_work *work;
	enum esp_status status;

	if (!trial->retunes)
		return esp_allreduce(world, data, data, trial->count, ESP_I32, ESP_SUM);
	struct esp_call call = ESP_CALL_INIT;
	call.type = ESP_I32;
	call.count = trial->count;
	call.in = call.out = data;
	call.plan = "two-level";
	status = esp_start(world, &call, &work);
	if (status == ESP_OK) {
		status = esp_wait(work, -1);
		esp_work_free(work);
	}
	return status;
}

static void survive(struct esp_group *world, const struct trial *trial, int32_t *data)
{
	struct esp_error error = ESP_ERROR_INIT;
	enum esp_status status = ESP_OK;

	while (status == ESP_OK)
		status = make_call(world, trial, data);
	job_expect(status, ESP_EPEER, "a call with a rank that was killed");
	OK(esp_last_error(&error));
	CHECK_MSG(error.rank == (int32_t)trial->victim, "the wrong one is named: %s", error.text);
	CHECK_MSG(error.host[0] != '\0' && strstr(error.text, trial->exits ? "exited without esp_fini()" : "died") != NULL, "%s",
	          error.text);
}

static int be_rank(uint32_t rank, const struct trial *trial, const char *leader)
{
	struct esp_options options = ESP_OPTIONS_INIT;
	const char *settings[] = {"linger_seconds=0", "log=off", trial->transport, "autotune=on", "autotune_ms=1", NULL};
	struct esp_context *context;
	int32_t *data = calloc(trial->count + 1, sizeof(*data));
	struct esp_work *work;

	options.rank = rank;
	options.size = trial->size;
	options.leader = leader;
	options.settings = settings;
	OK(esp_init(&options, &context));
	struct esp_group *world = esp_world(context);
	if (rank == trial->victim) {
		for (uint64_t i = 0; i < trial->calls_before; i++)
			OK(make_call(world, trial, data));
		if (trial->in_background)
			start_call(world, trial, data, &work);
		if (trial->exits)
			exit(VICTIM_STATUS);
		raise(SIGKILL);
	}
	survive(world, trial, data);
	OK(esp_fini(context));
	free(data);
	return 0;
}

static void run_trial(const struct trial *trial)
{
	char leader[32];
	pid_t children[RANKS_MOST];

	snprintf(leader, sizeof(leader), "127.0.0.1:%u", job_free_port());
	fflush(NULL);
	for (uint32_t i = 0; i < trial->size; i++) {
		children[i] = job_fork();
		if (children[i] == 0)
			exit(be_rank(i, trial, leader));
	}
	for (uint32_t i = 0; i < trial->size; i++) {
		int status = 0;

		CHECK(waitpid(children[i], &status, 0) == children[i]);
		if (i == trial->victim && trial->exits)
			CHECK(WIFEXITED(status) && WEXITSTATUS(status) == VICTIM_STATUS);
		else if (i == trial->victim)
			CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		else
			CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "rank %u of %u, victim %u, %llu elements, %s", i,
			          trial->size, trial->victim, (unsigned long long)trial->count, trial->transport);
	}
}

static void kill_at_random(uint64_t seed)
{
	static const char *const transports[] = {"transport=auto", "transport=tcp"};
	struct rng rng;
	struct trial trial;

	rng_init(&rng, seed);
	trial.size = 2 + (uint32_t)rng_below(&rng, 4);
	trial.victim = (uint32_t)rng_below(&rng, trial.size);
	trial.count = rng_chance(&rng, 1, 2) ? 1 + rng_below(&rng, 1000) : rng_below(&rng, 300000) + 1;
	trial.calls_before = 1 + rng_below(&rng, 20); /* then all have joined */
	trial.in_background = rng_chance(&rng, 1, 2);
	trial.transport = transports[rng_below(&rng, 2)];
	trial.exits = rng_chance(&rng, 1, 3);
	trial.retunes = strstr(trial.transport, "tcp") && rng_chance(&rng, 1, 2);
	if (trial.retunes) /* some windows */
		trial.calls_before += 100;
	run_trial(&trial);
}

/* ---- fork ---- */

static void be_child(struct esp_context *context, struct esp_work *work)
{
	int32_t data = 0;
	uint32_t index;
	void *memory;

	EXPECT(esp_allreduce(esp_world(context), &data, &data, 1, ESP_I32, ESP_SUM), ESP_EFORKED);
	EXPECT(esp_test(work), ESP_EFORKED);
	EXPECT(esp_wait(work, -1), ESP_EFORKED);
	EXPECT(esp_wait_any(&work, 1, -1, &index), ESP_EFORKED);
	EXPECT(esp_alloc(context, 1, &memory), ESP_EFORKED);
	EXPECT(esp_share(context, &data, sizeof(data)), ESP_EFORKED);
	EXPECT(esp_unshare(context, &data), ESP_EFORKED);
	EXPECT(esp_fini(context), ESP_EFORKED);
	esp_work_free(work);
	_exit(0);
}

static void fork_in_the_middle(struct job_rank *rank)
{
	enum { COUNT = 100000 };
	int32_t *data = malloc(COUNT * sizeof(*data));
	struct esp_call call = ESP_CALL_INIT;
	struct esp_work *work;

	for (int i = 0; i < COUNT; i++)
		data[i] = 1;
	call.type = ESP_I32;
	call.count = COUNT;
	call.in = call.out = data;
	OK(esp_start(rank->world, &call, &work));
	if (rank->rank == 0) {
		int status;
		pid_t child = fork();

		CHECK(child >= 0);
		if (child == 0)
			be_child(rank->context, work);
		CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	OK(esp_wait(work, -1));
	for (int i = 0; i < COUNT; i++)
		CHECK(data[i] == (int32_t)rank->size);
	esp_work_free(work);
	OK(esp_barrier(rank->world));
	free(data);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1);
	uint64_t count = test_option(argc, argv, "--count", 24);

	for (uint64_t i = 0; i < count; i++) {
		printf("--seed %llu --count 1\n", (unsigned long long)seed + i);
		kill_at_random(seed + i);
	}
	job_run(1, NULL, fork_in_the_middle, NULL);
	return 0;
}
