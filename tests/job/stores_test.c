/*
 * stores_test.c - memory into which other ranks store sums: what lies beside it, and what becomes of it when one of them stops.
 *
 * A rank is stopped at a random moment, often while it stores. The others give it up, get their memory back and write into it; then
 * the rank goes on, and nobody may find anything else there than what it has written.
 *
 *     job_stores_test [--seed FIRST] [--count JOBS]
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

enum { RANKS_MOST = 4, GUARD = 5000 };

struct trial {
	uint32_t size, victim;
	uint64_t count, calls_before, turns;
	bool out_of_place;
	bool is_own;     /* from malloc(), and shared      */
	uint64_t offset; /* elements from the beginning of a page */
};

struct pipes {
	int to_parent[2], to_rank[2];
};

static void say(int fd)
{
	CHECK(write(fd, "x", 1) == 1);
}

static void hear(int fd)
{
	char byte;

	CHECK(read(fd, &byte, 1) == 1);
}

static void scribble(uint32_t *data, uint64_t count, uint32_t salt)
{
	for (uint64_t i = 0; i < count; i++)
		data[i] = (uint32_t)i * 2654435761u + salt;
}

static void check_scribble(const uint32_t *data, uint64_t count, uint32_t salt)
{
	for (uint64_t i = 0; i < count; i++)
		CHECK_MSG(data[i] == (uint32_t)i * 2654435761u + salt, "element %llu of %llu was changed", (unsigned long long)i, (unsigned long long)count);
}

/* Stops itself in the middle of a call, and ends once it has gone on and seen that call end. */
static void stop(struct esp_group *world, const struct trial *trial, uint32_t *in, uint32_t *out)
{
	struct esp_call call = ESP_CALL_INIT;
	struct esp_work *work;
	volatile uint64_t turns = trial->turns;

	call.type = ESP_U32;
	call.count = trial->count;
	call.in = in;
	call.out = out;
	OK(esp_start(world, &call, &work));
	while (turns > 0)
		turns--;
	raise(SIGSTOP);
	enum esp_status status = esp_wait(work, -1);
	CHECK(status == ESP_OK || status < 0);
	_exit(0);
}

static int be_rank(uint32_t rank, const struct trial *trial, const char *leader, const struct pipes *pipes)
{
	struct esp_options options = ESP_OPTIONS_INIT;
	const char *settings[] = {"linger_seconds=0", "log=off", "liveness_ms=2000", NULL};
	struct esp_context *context;
	uint32_t *memory, *in, *out;
	uint64_t all = 2 * (trial->count + trial->offset + 2 * GUARD);

	for (uint32_t i = 0; i < trial->size; i++) { /* so that who ends is noticed */
		close(pipes[i].to_parent[0]);
		close(pipes[i].to_rank[1]);
		if (i != rank) {
			close(pipes[i].to_parent[1]);
			close(pipes[i].to_rank[0]);
		}
	}
	options.rank = rank;
	options.size = trial->size;
	options.leader = leader;
	options.settings = settings;
	OK(esp_init(&options, &context));
	struct esp_group *world = esp_world(context);
	if (trial->is_own)
		CHECK((memory = malloc(all * sizeof(*memory))) != NULL);
	else
		OK(esp_alloc(context, all * sizeof(*memory), (void **)&memory));
	scribble(memory, all, 0);
	in = memory + GUARD + trial->offset;
	out = trial->out_of_place ? in + trial->count + 2 * GUARD : in;
	if (trial->is_own)
		OK(esp_share(context, in, trial->count * sizeof(*in)));
	if (trial->is_own && out != in)
		OK(esp_share(context, out, trial->count * sizeof(*out)));
	for (uint64_t i = 0; i < trial->calls_before; i++) {
		for (uint64_t k = 0; k < trial->count; k++)
			in[k] = (uint32_t)k + rank;
		OK(esp_allreduce(world, in, out, trial->count, ESP_U32, ESP_SUM));
		for (uint64_t k = 0; k < trial->count; k++)
			CHECK_U64(out[k], (uint32_t)k * trial->size + trial->size * (trial->size - 1) / 2);
	}
	/* Nobody has stored beyond it. */
	check_scribble(memory, GUARD, 0);
	for (uint64_t i = 0; i < GUARD; i++)
		CHECK_U64(out[trial->count + i], (uint32_t)(out + trial->count + i - memory) * 2654435761u);
	if (rank == trial->victim)
		stop(world, trial, in, out);
	enum esp_status status = ESP_OK;
	while (status == ESP_OK)
		status = esp_allreduce(world, in, out, trial->count, ESP_U32, ESP_SUM);
	job_expect(status, ESP_EPEER, "a call with a rank that has stopped");
	scribble(out, trial->count, rank);
	say(pipes[rank].to_parent[1]);
	hear(pipes[rank].to_rank[0]); /* it has gone on, and ended */
	check_scribble(out, trial->count, rank);
	if (!trial->is_own)
		OK(esp_free(context, memory));
	OK(esp_fini(context));
	if (trial->is_own) {
		check_scribble(out, trial->count, rank);
		free(memory);
	}
	return 0;
}

static void run_trial(const struct trial *trial)
{
	char leader[32];
	pid_t children[RANKS_MOST];
	struct pipes pipes[RANKS_MOST];
	int status;

	snprintf(leader, sizeof(leader), "127.0.0.1:%u", job_free_port());
	fflush(NULL);
	for (uint32_t i = 0; i < trial->size; i++)
		CHECK(pipe(pipes[i].to_parent) == 0 && pipe(pipes[i].to_rank) == 0);
	for (uint32_t i = 0; i < trial->size; i++) {
		children[i] = job_fork();
		if (children[i] == 0)
			exit(be_rank(i, trial, leader, pipes));
	}
	for (uint32_t i = 0; i < trial->size; i++) {
		close(pipes[i].to_parent[1]);
		close(pipes[i].to_rank[0]);
	}
	for (uint32_t i = 0; i < trial->size; i++) {
		if (i != trial->victim)
			hear(pipes[i].to_parent[0]);
	}
	/* It stops by itself, before the others can have given it up. */
	CHECK(kill(children[trial->victim], SIGCONT) == 0);
	CHECK(waitpid(children[trial->victim], &status, 0) == children[trial->victim]);
	CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the rank that was stopped: %d", status);
	for (uint32_t i = 0; i < trial->size; i++) {
		if (i == trial->victim)
			continue;
		say(pipes[i].to_rank[1]);
		CHECK(waitpid(children[i], &status, 0) == children[i]);
		CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "rank %u of %u, victim %u, %llu elements at %llu", i, trial->size,
		          trial->victim, (unsigned long long)trial->count, (unsigned long long)trial->offset);
	}
	for (uint32_t i = 0; i < trial->size; i++) {
		close(pipes[i].to_parent[0]);
		close(pipes[i].to_rank[1]);
	}
}

static void stop_at_random(uint64_t seed)
{
	static const uint64_t offsets[] = {0, 1, 1000, 1024};
	struct rng rng;
	struct trial trial;

	rng_init(&rng, seed);
	trial.size = 2 + (uint32_t)rng_below(&rng, RANKS_MOST - 1);
	trial.victim = (uint32_t)rng_below(&rng, trial.size);
	trial.count = 50000 + rng_below(&rng, 2000000);
	trial.calls_before = 1 + rng_below(&rng, 3);
	trial.turns = rng_below(&rng, UINT64_C(1) << rng_below(&rng, 22));
	trial.out_of_place = rng_chance(&rng, 1, 2);
	trial.offset = offsets[rng_below(&rng, 4)];
	trial.is_own = rng_chance(&rng, 1, 2);
	run_trial(&trial);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 6);

	for (uint64_t i = 0; i < count; i++) {
		printf("--seed %" PRIu64 " --count 1\n", seed + i);
		stop_at_random(seed + i);
	}
	return 0;
}
