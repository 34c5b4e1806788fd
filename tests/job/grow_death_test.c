/*
 * grow_death_test.c - somebody dies at a random moment of esp_grow(): all members who are left come to one end, at once, and go on together.
 *
 *     job_grow_death_test [--seed N] [--count N]
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "job.h"

enum { RANKS_MOST = 6, NEWCOMERS_MOST = 3, PEOPLE_MOST = RANKS_MOST + NEWCOMERS_MOST };

enum moment {
	IN_GROW,    /* so long after it has begun               */
	AFTER_GROW, /* so long after it has returned, with ESP_OK */
};

/* What the processes of a trial share. */
struct board {
	char door[64];
	atomic_uint begun; /* members who are about to call esp_grow() */
	atomic_bool is_dead;
	atomic_int outcomes[RANKS_MOST]; /* enum esp_status of esp_grow(), 1: none yet */
	atomic_int sizes[PEOPLE_MOST];   /* of the group in which each has ended; 0: in none */
	atomic_bool is_in[NEWCOMERS_MOST];
};

struct trial {
	uint32_t size, newcomers, victim; /* victim: from size on a newcomer */
	enum moment moment;
	uint64_t delay_ns;
	const char *transport;
	struct board *board;
};

static void die_at(uint64_t at_ns)
{
	while (clock_now_ns() < at_ns)
		;
	raise(SIGKILL);
}

static void *die_later(void *argument)
{
	const struct trial *trial = argument;

	while (atomic_load(&trial->board->begun) < trial->size)
		sched_yield();
	die_at(clock_now_ns() + trial->delay_ns);
	return NULL;
}

static void prepare_to_die(const struct trial *trial)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, die_later, (void *)(uintptr_t)trial) == 0);
}

/* Until all know that the victim is dead, and have met since then: with those who are left. */
static void go_on(struct esp_group *group, const struct trial *trial, uint32_t who)
{
	enum esp_status status = ESP_OK;
	int32_t mine = 0, all = 0;

	while (status == ESP_OK && all == 0) {
		mine = atomic_load(&trial->board->is_dead);
		status = esp_allreduce(group, &mine, &all, 1, ESP_I32, ESP_MIN);
	}
	while (status != ESP_OK) {
		struct esp_group *left;

		CHECK_MSG(status == ESP_EPEER || status == ESP_EABORTED || status == ESP_ELINK, "%s", esp_status_name(status));
		OK(esp_group_shrink(group, NULL, &left));
		group = left;
		mine = 1;
		status = esp_allreduce(group, &mine, &all, 1, ESP_I32, ESP_SUM);
		CHECK(status != ESP_OK || (uint32_t)all == esp_size(group));
	}
	atomic_store(&trial->board->sizes[who], (int)esp_size(group));
}

static void init(uint32_t rank, uint32_t size, const char *leader, const struct trial *trial, enum esp_status *out_status, struct esp_context **out)
{
	const char *settings[] = {"linger_seconds=1", "log=off", trial->transport, NULL};
	struct esp_options options = ESP_OPTIONS_INIT;

	options.rank = rank;
	options.size = size;
	options.leader = leader;
	options.job = "dying";
	options.settings = settings;
	*out_status = esp_init(&options, out);
}

/* Who does not grow is told who has died, and goes on in the old group. */
static void not_grown(struct esp_context *context, enum esp_status status, const struct trial *trial, uint32_t rank)
{
	struct esp_error error = ESP_ERROR_INIT;

	OK(esp_last_error(&error));
	CHECK_MSG(status != ESP_ETIMEOUT, "%s", error.text);
	if (trial->victim < trial->size)
		CHECK_MSG(status == ESP_EPEER && error.rank == (int32_t)trial->victim, "%s: %s (rank %d)", esp_status_name(status), error.text, error.rank);
	go_on(esp_world(context), trial, rank);
}

static void be_member(uint32_t rank, const struct trial *trial, const char *leader, int ready_fd)
{
	struct board *board = trial->board;
	struct esp_context *context, *grown = NULL;
	enum esp_status status;

	init(rank, trial->size, leader, trial, &status, &context);
	OK(status);
	if (rank == 0) {
		OK(esp_door(context, board->door, sizeof(board->door)));
		CHECK(write(ready_fd, "r", 1) == 1);
		while (esp_newcomers(context) < trial->newcomers)
			sched_yield();
	}
	if (rank == trial->victim && trial->moment == IN_GROW)
		prepare_to_die(trial);
	atomic_fetch_add(&board->begun, 1);
	while (atomic_load(&board->begun) < trial->size)
		sched_yield();
	status = esp_grow(esp_world(context), 0, 0, &grown);
	atomic_store(&board->outcomes[rank], status);
	if (rank == trial->victim && trial->moment == AFTER_GROW)
		die_at(clock_now_ns() + trial->delay_ns);
	if (status == ESP_OK) {
		CHECK(grown != NULL || trial->victim == trial->size); /* the only newcomer was gone before */
		if (grown)
			OK(esp_fini(context)); /* as the page says */
		context = grown ? grown : context;
		go_on(esp_world(context), trial, rank);
	} else {
		CHECK(grown == NULL);
		not_grown(context, status, trial, rank);
	}
	OK(esp_fini(context));
	exit(0);
}

static void be_newcomer(uint32_t number, const struct trial *trial)
{
	struct esp_context *context;
	enum esp_status status;

	CHECK(setenv("ESP_DOOR", trial->board->door, 1) == 0);
	if (trial->size + number == trial->victim)
		prepare_to_die(trial);
	init(0, 0, NULL, trial, &status, &context);
	if (status != ESP_OK) /* then the members have not grown */
		exit(0);
	atomic_store(&trial->board->is_in[number], true);
	go_on(esp_world(context), trial, trial->size + number);
	OK(esp_fini(context));
	exit(0);
}

/* One end for all, and one group. */
static void check_ends(const struct trial *trial)
{
	const struct board *board = trial->board;
	uint32_t first = trial->victim == 0;

	for (uint32_t i = 0; i < trial->size; i++) {
		if (i == trial->victim)
			continue;
		CHECK_MSG((board->outcomes[i] == ESP_OK) == (board->outcomes[first] == ESP_OK), "esp_grow(): %s on rank %u, %s on rank %u",
		          esp_status_name((enum esp_status)board->outcomes[i]), i, esp_status_name((enum esp_status)board->outcomes[first]), first);
		CHECK_MSG(board->sizes[i] == board->sizes[first], "rank %u has ended among %d, rank %u among %d", i, board->sizes[i], first,
		          board->sizes[first]);
	}
	uint32_t members = trial->size - (trial->victim < trial->size);
	CHECK_MSG(board->sizes[first] >= (int)members, "%d of %u members have gone on", board->sizes[first], members);
}

static void run_trial(const struct trial *trial)
{
	char leader[32], byte;
	pid_t children[PEOPLE_MOST];
	uint32_t people = trial->size + trial->newcomers;
	int ready[2], status;

	memset(trial->board, 0, sizeof(*trial->board));
	snprintf(leader, sizeof(leader), "127.0.0.1:%u", job_free_port());
	CHECK(pipe(ready) == 0);
	fflush(NULL);
	for (uint32_t i = 0; i < people; i++) {
		if (i == trial->size)
			CHECK(read(ready[0], &byte, 1) == 1);
		children[i] = job_fork();
		if (i < trial->size && children[i] == 0)
			be_member(i, trial, leader, ready[1]);
		else if (children[i] == 0)
			be_newcomer(i - trial->size, trial);
	}
	CHECK(waitpid(children[trial->victim], &status, 0) == children[trial->victim]);
	CHECK_MSG(WIFSIGNALED(status) || trial->moment == IN_GROW, "%x", (unsigned)status);
	atomic_store(&trial->board->is_dead, true);
	for (uint32_t i = 0; i < people; i++) {
		if (i == trial->victim)
			continue;
		if (i >= trial->size && !trial->board->is_in[i - trial->size]) /* it may wait for another turn */
			CHECK(kill(children[i], SIGKILL) == 0);
		CHECK(waitpid(children[i], &status, 0) == children[i]);
		bool is_good = WIFEXITED(status) ? WEXITSTATUS(status) == 0 : i >= trial->size && WTERMSIG(status) == SIGKILL;
		CHECK_MSG(is_good, "process %u of %u members and %u newcomers: %x", i, trial->size, trial->newcomers, (unsigned)status);
	}
	check_ends(trial);
	close(ready[0]);
	close(ready[1]);
}

int main(int argc, char **argv)
{
	static const char *const transports[] = {"transport=auto", "transport=tcp"};
	uint64_t seed = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 40);
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t grown = 0;

	CHECK(board != MAP_FAILED);
	for (uint64_t i = 0; i < count; i++) {
		struct rng rng;

		rng_init(&rng, seed + i);
		struct trial trial = {.size = 2 + (uint32_t)rng_below(&rng, RANKS_MOST - 1), .newcomers = 1 + (uint32_t)rng_below(&rng, NEWCOMERS_MOST)};
		trial.moment = rng_chance(&rng, 1, 3) ? AFTER_GROW : IN_GROW;
		trial.victim = (uint32_t)rng_below(&rng, trial.moment == IN_GROW ? trial.size + trial.newcomers : trial.size);
		/* Most of what happens does so in the first milliseconds, how many depends on the machine. */
		trial.delay_ns = rng_below(&rng, trial.moment == IN_GROW ? UINT64_C(1000000) << rng_below(&rng, 7) : 300000);
		trial.transport = transports[rng_below(&rng, 2)];
		trial.board = board;
		printf("--seed %" PRIu64 " --count 1: %u members, %u newcomers, %u dies %.3f ms %s\n", seed + i, trial.size,
		       trial.newcomers, trial.victim, (double)trial.delay_ns / 1e6, trial.moment == IN_GROW ? "into it" : "after it");
		fflush(stdout);
		run_trial(&trial);
		grown += board->outcomes[trial.victim == 0] == ESP_OK;
	}
	printf("%u of %llu have grown\n", grown, (unsigned long long)count);
	munmap(board, sizeof(*board));
	return 0;
}
