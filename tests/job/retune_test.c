/*
 * retune_test.c - masters move while calls of all kinds are made: no bit of a result changes, all ranks move alike, nothing is left over.
 *
 *     retune_test [--seed N]
 *
 * Ranks are told apart as hosts, so two-level plans have groups of one, whose global masters can be moved. Windows are a
 * millisecond, and what threads of one machine measure in that scatters so much that masters are moved every now and then.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/rng.h"
#include "job.h"

enum { RANKS = 4, MOST = 200000, WORKS = 6 };

static const char *const settings[] = {"transport=tcp", "autotune=on", "autotune_ms=1", "lanes=2", "deadline_seconds=30", NULL};

/* Sums of these depend on the order of addition. */
static void fill(float *data, uint32_t rank, uint64_t count)
{
	struct rng rng;

	rng_init(&rng, rank + 1);
	for (uint64_t i = 0; i < count; i++)
		data[i] = (float)(rng_unit(&rng) - 0.5) * (float)(1u << rng_below(&rng, 24));
}

static struct esp_call describe(const float *in, float *out, uint64_t count)
{
	struct esp_call call = ESP_CALL_INIT;

	call.type = ESP_F32;
	call.count = count;
	call.in = in;
	call.out = out;
	call.plan = "two-level";
	return call;
}

static float *new_floats(void)
{
	float *data = malloc(MOST * sizeof(*data));

	CHECK(data);
	return data;
}

static void run(struct esp_group *group, const float *in, float *out, uint64_t count)
{
	struct esp_call call = describe(in, out, count);
	struct esp_work *work;

	OK(esp_start(group, &call, &work));
	OK(esp_wait(work, -1));
	CHECK_STR(esp_work_plan(work), "two-level");
	esp_work_free(work);
}

static void check_bits(const float *data, const float *expected, uint64_t count)
{
	CHECK_MSG(memcmp(data, expected, count * sizeof(*data)) == 0, "other bits");
}

/* Many at once; the one that was prepared at the beginning among them. */
static void run_many(struct esp_group *group, struct esp_work *prepared, const float *in, float *const *outs, const float *expected,
                     struct rng *rng)
{
	struct esp_work *works[WORKS];
	uint64_t counts[WORKS];

	for (uint32_t i = 0; i < WORKS; i++) {
		counts[i] = MOST / 4 + rng_below(rng, MOST / 2);
		struct esp_call call = describe(in, outs[i], counts[i]);

		OK(esp_start(group, &call, &works[i]));
		if (i == WORKS / 2)
			OK(esp_restart(prepared));
	}
	for (uint32_t i = 0; i < WORKS; i++) {
		OK(esp_wait(works[i], -1));
		esp_work_free(works[i]);
		check_bits(outs[i], expected, counts[i]);
	}
	OK(esp_wait(prepared, -1));
	check_bits(outs[WORKS], expected, MOST);
	memset(outs[WORKS], 0, MOST * sizeof(float));
}

/* All ranks have moved masters equally often, and as many. */
static uint64_t check_alike(struct job_rank *rank)
{
	struct esp_stats stats = ESP_STATS_INIT;

	OK(esp_get_stats(rank->context, &stats));
	uint64_t mine[4] = {stats.retunes, stats.moved_masters, UINT64_MAX - stats.retunes, UINT64_MAX - stats.moved_masters}, most[4];
	OK(esp_allreduce(rank->world, mine, most, 4, ESP_U64, ESP_MAX));
	CHECK(memcmp(mine, most, sizeof(mine)) == 0);
	return stats.retunes;
}

static void mix(struct job_rank *rank)
{
	uint64_t seed = *(uint64_t *)rank->argument, rounds = 40, moved = 0;
	float *in = new_floats(), *expected = new_floats(), *outs[WORKS + 1];
	struct esp_work *prepared;
	struct esp_group *part;
	struct rng rng;

	rng_init(&rng, seed);
	for (uint32_t i = 0; i <= WORKS; i++)
		outs[i] = new_floats();
	fill(in, rank->rank, MOST);
	run(rank->world, in, expected, MOST);
	struct esp_call call = describe(in, outs[WORKS], MOST);
	OK(esp_prepare(rank->world, &call, &prepared));
	for (uint64_t i = 0; i < rounds; i++) {
		for (uint64_t k = 0; k < 10; k++) {
			uint64_t count = 1 + rng_below(&rng, MOST);

			run(rank->world, in, outs[0], count);
			check_bits(outs[0], expected, count);
		}
		/* Half of the ranks have prepared it with the masters of now, the others with those of long ago. */
		if (rank->rank % 2 == 1) {
			esp_work_free(prepared);
			OK(esp_prepare(rank->world, &call, &prepared));
		}
		run_many(rank->world, prepared, in, outs, expected, &rng);
		moved = check_alike(rank);
	}
	/* A group that is freed, and a context that is closed, when a window may just have been closed. */
	OK(esp_group_split(rank->world, rank->rank < 3 ? 0 : -1, 0, &part));
	for (uint64_t i = 0; part && i < 60; i++)
		run(part, in, outs[0], MOST);
	if (part)
		OK(esp_group_free(part));
	run(rank->world, in, outs[0], MOST);
	check_bits(outs[0], expected, MOST);
	CHECK(moved > 0);
	esp_work_free(prepared);
	for (uint32_t i = 0; i <= WORKS; i++)
		free(outs[i]);
	free(in);
	free(expected);
}

/*
 * A root is through with its broadcast before the last has come to it, and frees the group: it waits for that one, however long
 * beyond the interval of liveness it takes, and so do the others.
 */
struct lateness {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_freed; /* by the root */
};

static void frees_early(struct job_rank *rank)
{
	struct lateness *lateness = rank->argument;
	float *in = new_floats(), *out = new_floats();
	struct esp_call call = ESP_CALL_INIT;
	struct esp_group *group;

	fill(in, rank->rank, MOST);
	OK(esp_group_split(rank->world, 0, 0, &group));
	for (uint64_t i = 0; i < 20; i++)
		run(group, in, out, MOST);
	if (rank->rank == 2) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 3;
		pthread_mutex_lock(&lateness->lock);
		while (!lateness->is_freed && pthread_cond_timedwait(&lateness->changed, &lateness->lock, &until) == 0)
			;
		CHECK(!lateness->is_freed);
		pthread_mutex_unlock(&lateness->lock);
	}
	call.collective = ESP_BROADCAST;
	call.type = ESP_F32;
	call.count = MOST;
	call.in = call.out = rank->rank == 0 ? in : out;
	call.plan = "two-level";
	OK(esp_run(group, &call));
	OK(esp_group_free(group));
	if (rank->rank == 0) {
		pthread_mutex_lock(&lateness->lock);
		lateness->is_freed = true;
		pthread_cond_signal(&lateness->changed);
		pthread_mutex_unlock(&lateness->lock);
	}
	OK(esp_barrier(rank->world));
	free(in);
	free(out);
}

/* Nothing is measured where it is off, or where calls have no masters. */
static void stays_off(struct job_rank *rank)
{
	struct esp_stats stats = ESP_STATS_INIT;
	float *in = new_floats(), *out = new_floats();

	fill(in, rank->rank, MOST);
	for (uint64_t i = 0; i < 60; i++)
		run(rank->world, in, out, MOST);
	OK(esp_get_stats(rank->context, &stats));
	CHECK(stats.retunes == 0 && stats.moved_masters == 0);
	free(in);
	free(out);
}

int main(int argc, char **argv)
{
	static const char *const off[] = {"transport=tcp", "autotune=off", "autotune_ms=1", NULL};
	static const char *const by_itself[] = {"transport=tcp", "autotune_ms=1", NULL}; /* each host is a group: nothing to choose */
	static const char *const short_interval[] = {"transport=tcp", "autotune=on", "autotune_ms=1", "liveness_ms=1000", "deadline_seconds=30", NULL};
	uint64_t seed = test_seed(argc, argv, 1);
	struct lateness lateness = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};

	job_run(RANKS, settings, mix, &seed);
	job_run(3, short_interval, frees_early, &lateness);
	job_run(3, off, stays_off, NULL);
	job_run(3, by_itself, stays_off, NULL);
	return 0;
}
