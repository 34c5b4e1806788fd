/*
 * survive_test.c - ranks are killed, stopped and thawed, or just exit; those who are left shrink the group and go on, and
 * every sum is that of those who are in it.
 *
 *     job_survive_test [--seed N] [--count N]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "job.h"

enum { RANKS_MOST = 8 };
enum { EXIT_WENT_ON = 0, EXIT_LEFT_OUT = 3, EXIT_BY_ITSELF = 7 };

enum way {
	WAY_NONE,
	WAY_KILL,
	WAY_EXIT,  /* without esp_fini()                   */
	WAY_STOP,  /* for ever: until all others are through */
	WAY_THAW,  /* for a while                          */
};

struct trial {
	uint64_t seed;
	uint32_t size;
	enum way ways[RANKS_MOST];
	uint64_t at_ns[RANKS_MOST];   /* when it happens, after all have joined */
	uint64_t thaw_ns[RANKS_MOST]; /* and for how long                       */
	uint64_t count;
	const char *transport, *liveness, *quorum;
	uint64_t interval_ns, play_ns;
};

/* ---- a rank ---- */

/* The sum of what its members give: a bit for each. */
static int64_t expected(const struct esp_group *group)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < esp_size(group); i++)
		sum |= INT64_C(1) << esp_world_rank(group, i);
	return sum;
}

struct played {
	uint64_t last_well; /* the highest number of a call that ended well */
	bool is_over;
};

static enum esp_status check_call(struct esp_group *group, enum esp_status status, struct played *played)
{
	if (status == ESP_OK)
		played->last_well = esp_group_calls(group);
	return status;
}

/* Until somebody says that it is time, or something fails. */
static enum esp_status play(struct esp_group *group, const struct trial *trial, int64_t *data, uint64_t end_ns, struct played *played)
{
	int64_t mine = INT64_C(1) << esp_world_rank(group, esp_rank(group)), wanted = expected(group);

	for (;;) {
		int64_t over = clock_now_ns() >= end_ns, any = 0;

		for (uint64_t i = 0; i < trial->count; i++)
			data[i] = mine;
		enum esp_status status = check_call(group, esp_allreduce(group, data, data, trial->count, ESP_I64, ESP_SUM), played);
		if (status != ESP_OK)
			return status;
		for (uint64_t i = 0; i < trial->count; i++)
			CHECK_MSG(data[i] == wanted, "element %llu is %llx, expected %llx", (unsigned long long)i, (long long)data[i],
			          (long long)wanted);
		status = check_call(group, esp_allreduce(group, &over, &any, 1, ESP_I64, ESP_MAX), played);
		if (status != ESP_OK)
			return status;
		if (any) {
			played->is_over = true;
			return ESP_OK;
		}
	}
}

/* All who go on have the same report, and it is true here. Nothing ended well anywhere that this rank had not made. */
static void check_report(struct esp_group *group, const struct esp_shrink *shrink, uint64_t calls, const struct played *played)
{
	CHECK_MSG(shrink->completed_somewhere <= calls, "%llu calls were made here, and the report says that %llu ended well somewhere",
	          (unsigned long long)calls, (unsigned long long)shrink->completed_somewhere);
	CHECK_MSG(shrink->completed_somewhere >= played->last_well && shrink->completed_everywhere <= played->last_well,
	          "call %llu was the last to end well here, and the report says %llu and %llu", (unsigned long long)played->last_well,
	          (unsigned long long)shrink->completed_everywhere, (unsigned long long)shrink->completed_somewhere);
	int64_t mine[3] = {(int64_t)shrink->completed_everywhere, (int64_t)shrink->completed_somewhere, shrink->lost_count};
	int64_t most[3], least[3];
	if (esp_allreduce(group, mine, most, 3, ESP_I64, ESP_MAX) != ESP_OK ||
	    esp_allreduce(group, mine, least, 3, ESP_I64, ESP_MIN) != ESP_OK)
		return; /* somebody else has died meanwhile */
	CHECK(memcmp(most, least, sizeof(most)) == 0 && memcmp(most, mine, sizeof(most)) == 0);
}

static int be_rank(uint32_t rank, const struct trial *trial, const char *leader, int ready_fd)
{
	struct esp_options options = ESP_OPTIONS_INIT;
	const char *settings[] = {"linger_seconds=2", "log=off", trial->transport, trial->liveness, trial->quorum, NULL};
	struct esp_context *context;
	int64_t *data = calloc(trial->count + 1, sizeof(*data));
	struct played played = {0};

	options.rank = rank;
	options.size = trial->size;
	options.leader = leader;
	options.settings = settings;
	OK(esp_init(&options, &context));
	CHECK(write(ready_fd, "r", 1) == 1);
	struct esp_group *group = esp_world(context), *next;
	uint64_t end = clock_now_ns() + trial->play_ns;
	if (trial->ways[rank] == WAY_EXIT)
		end = clock_now_ns() + trial->at_ns[rank];
	while (!played.is_over) {
		struct esp_shrink shrink = ESP_SHRINK_INIT;
		uint32_t lost[RANKS_MOST];
		enum esp_status status = play(group, trial, data, trial->ways[rank] == WAY_EXIT ? UINT64_MAX : end, &played);

		if (trial->ways[rank] == WAY_EXIT && clock_now_ns() >= end)
			exit(EXIT_BY_ITSELF);
		if (status == ESP_OK)
			break;
		uint64_t calls = esp_group_calls(group);
		shrink.lost = lost;
		shrink.lost_room = RANKS_MOST;
		status = esp_group_shrink(group, &shrink, &next);
		if (status == ESP_EEXCLUDED || status == ESP_EQUORUM)
			return EXIT_LEFT_OUT;
		job_expect(status, ESP_OK, "esp_group_shrink");
		CHECK(shrink.lost_count == esp_size(group) - esp_size(next));
		if (group != esp_world(context))
			OK(esp_group_free(group));
		group = next;
		check_report(group, &shrink, calls, &played);
		played.last_well = 0;
	}
	OK(esp_fini(context));
	free(data);
	return EXIT_WENT_ON;
}

/* ---- what happens to them ---- */

static void sleep_until(uint64_t ns)
{
	struct timespec at = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
		;
}

struct event {
	uint64_t at_ns;
	uint32_t rank;
	int signal;
};

static int compare_events(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static void do_events(const struct trial *trial, const pid_t *children)
{
	struct event events[2 * RANKS_MOST] = {0};
	size_t count = 0;

	for (uint32_t i = 0; i < trial->size; i++) {
		if (trial->ways[i] == WAY_KILL)
			events[count++] = (struct event){trial->at_ns[i], i, SIGKILL};
		if (trial->ways[i] == WAY_STOP || trial->ways[i] == WAY_THAW)
			events[count++] = (struct event){trial->at_ns[i], i, SIGSTOP};
		if (trial->ways[i] == WAY_THAW)
			events[count++] = (struct event){trial->at_ns[i] + trial->thaw_ns[i], i, SIGCONT};
	}
	qsort(events, count, sizeof(events[0]), compare_events);
	uint64_t began = clock_now_ns();
	for (size_t i = 0; i < count; i++) {
		sleep_until(began + events[i].at_ns);
		CHECK(kill(children[events[i].rank], events[i].signal) == 0);
	}
}

static void check_end(const struct trial *trial, uint32_t rank, int status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	bool is_good = false;

	switch (trial->ways[rank]) {
	case WAY_NONE:
		is_good = code == EXIT_WENT_ON || (code == EXIT_LEFT_OUT && strcmp(trial->quorum, "quorum=yes") == 0);
		break;
	case WAY_KILL:
		is_good = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		break;
	case WAY_EXIT: /* or the others were through before */
		is_good = code == EXIT_BY_ITSELF || code == EXIT_WENT_ON || code == EXIT_LEFT_OUT;
		break;
	case WAY_STOP:
		is_good = code == EXIT_LEFT_OUT;
		break;
	case WAY_THAW:
		is_good = code == EXIT_LEFT_OUT || code == EXIT_WENT_ON;
		break;
	}
	CHECK_MSG(is_good, "--seed %llu: rank %u of %u, way %d: status %x, %s, %llu elements", (unsigned long long)trial->seed, rank,
	          trial->size, trial->ways[rank], (unsigned)status, trial->transport, (unsigned long long)trial->count);
}

static void run_trial(const struct trial *trial)
{
	char leader[32], byte;
	pid_t children[RANKS_MOST];
	int ready[2], status;

	snprintf(leader, sizeof(leader), "127.0.0.1:%u", job_free_port());
	CHECK(pipe(ready) == 0);
	fflush(NULL);
	for (uint32_t i = 0; i < trial->size; i++) {
		children[i] = job_fork();
		if (children[i] == 0)
			exit(be_rank(i, trial, leader, ready[1]));
	}
	for (uint32_t i = 0; i < trial->size; i++)
		CHECK(read(ready[0], &byte, 1) == 1);
	do_events(trial, children);
	/* Those who are stopped for ever thaw when all others are through. */
	for (unsigned stopped = 0; stopped < 2; stopped++) {
		for (uint32_t i = 0; i < trial->size; i++) {
			if ((trial->ways[i] == WAY_STOP) != (stopped == 1))
				continue;
			if (stopped)
				CHECK(kill(children[i], SIGCONT) == 0);
			CHECK(waitpid(children[i], &status, 0) == children[i]);
			check_end(trial, i, status);
		}
	}
	close(ready[0]);
	close(ready[1]);
}

/* How many may be hit: all but one, sometimes, and then close to each other. */
static void draw(uint64_t seed, struct trial *trial)
{
	static const char *const transports[] = {"transport=auto", "transport=tcp"};
	struct rng rng;

	rng_init(&rng, seed);
	*trial = (struct trial){
		.seed = seed,
		.size = 3 + (uint32_t)rng_below(&rng, 4),
		.count = rng_chance(&rng, 1, 2) ? 1 + rng_below(&rng, 500) : 1 + rng_below(&rng, 200000),
		.transport = transports[rng_below(&rng, 2)],
		.interval_ns = 2 * NS_PER_S,
		.liveness = "liveness_ms=2000",
		.quorum = rng_chance(&rng, 1, 4) ? "quorum=yes" : "quorum=no",
	};
	bool stops = rng_chance(&rng, 1, 3);
	uint64_t victims = 1 + rng_below(&rng, rng_chance(&rng, 1, 3) ? trial->size - 1 : 2);
	for (uint64_t i = 0; i < victims; i++) {
		uint32_t rank = (uint32_t)rng_below(&rng, trial->size);

		trial->ways[rank] = stops ? WAY_STOP + (enum way)rng_below(&rng, 2) : WAY_KILL + (enum way)rng_below(&rng, 2);
		trial->at_ns[rank] = rng_below(&rng, rng_chance(&rng, 1, 2) ? 20 * NS_PER_MS : 300 * NS_PER_MS);
		trial->thaw_ns[rank] = rng_below(&rng, 2 * trial->interval_ns);
	}
	trial->play_ns = stops ? 3 * trial->interval_ns : 500 * NS_PER_MS;
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1);
	uint64_t count = test_option(argc, argv, "--count", 12);

	for (uint64_t i = 0; i < count; i++) {
		struct trial trial;

		printf("--seed %llu --count 1\n", (unsigned long long)seed + i);
		draw(seed + i, &trial);
		run_trial(&trial);
	}
	return 0;
}
