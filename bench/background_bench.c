/*
 * background_bench.c - how soon a callback comes that nobody waits for, over the public API.
 *
 *     espalier run -n 4 -- build/bench/background_bench [CALLS]
 *
 * Every rank starts an allreduce (esp_start) and then sleeps on a semaphore of its own, as a thread that computes would be away; the
 * callback takes the time and wakes it. All ranks meet before each call. Rank 0 prints, for each size, the median and the 90th
 * percentile of the times from the start to the callback, the largest of any rank; and beside them those of the same
 * call when its caller waits (esp_run).
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "espalier/espalier.h"

#define LARGEST (4u << 20) /* bytes */

struct rank {
	struct esp_group *world;
	float *data;
	uint32_t calls;
	double *times_us;
	uint64_t ended_ns;
	sem_t ended;
};

static void must(enum esp_status status)
{
	struct esp_error error = ESP_ERROR_INIT;

	if (status == ESP_OK)
		return;
	esp_last_error(&error);
	fprintf(stderr, "background_bench: %s\n", error.text);
	exit(1);
}

static void on_done(void *context, struct esp_work *work, enum esp_status status)
{
	struct rank *rank = context;

	(void)work;
	must(status);
	rank->ended_ns = clock_now_ns();
	sem_post(&rank->ended);
}

/* Microseconds from the start to the callback. */
static double in_background(struct rank *rank, struct esp_call *call)
{
	struct esp_work *work;
	uint64_t begin_ns = clock_now_ns();

	call->done = on_done;
	call->done_context = rank;
	must(esp_start(rank->world, call, &work));
	while (sem_wait(&rank->ended) != 0)
		;
	esp_work_free(work);
	return (double)(rank->ended_ns - begin_ns) * 1e-3;
}

static double blocking(struct rank *rank, struct esp_call *call)
{
	uint64_t begin_ns = clock_now_ns();

	call->done = NULL;
	must(esp_run(rank->world, call));
	return (double)(clock_now_ns() - begin_ns) * 1e-3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The largest of any rank. */
static double percentile(struct rank *rank, double share)
{
	double own = rank->times_us[(uint32_t)(share * (rank->calls - 1))], most;

	must(esp_allreduce(rank->world, &own, &most, 1, ESP_F64, ESP_MAX));
	return most;
}

static void measure(struct rank *rank, uint64_t bytes, double (*how)(struct rank *rank, struct esp_call *call), double out[2])
{
	struct esp_call call = ESP_CALL_INIT;

	call.count = bytes / sizeof(float);
	call.in = call.out = rank->data;
	for (uint32_t i = 0; i < rank->calls; i++) {
		must(esp_barrier(rank->world));
		rank->times_us[i] = how(rank, &call);
	}
	qsort(rank->times_us, rank->calls, sizeof(*rank->times_us), by_value);
	out[0] = percentile(rank, 0.5);
	out[1] = percentile(rank, 0.9);
}

int main(int argc, char **argv)
{
	static const uint64_t sizes[] = {4, 4096, 65536, 1u << 20, LARGEST};
	struct rank rank = {.calls = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 500};
	struct esp_context *job;

	if (rank.calls < 1 || rank.calls > 1000000) {
		fprintf(stderr, "usage: %s [CALLS]\n", argv[0]);
		return 2;
	}
	rank.times_us = calloc(rank.calls, sizeof(*rank.times_us));
	if (!rank.times_us || sem_init(&rank.ended, 0, 0) != 0)
		return 1;
	must(esp_init(NULL, &job));
	rank.world = esp_world(job);
	must(esp_alloc(job, LARGEST, (void **)&rank.data));
	if (esp_rank(rank.world) == 0)
		printf("%10s  %21s  %21s\n%10s  %10s %10s  %10s %10s\n", "", "background, us", "blocking, us", "bytes", "median", "p90",
		       "median", "p90");
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double background[2], blocked[2];

		measure(&rank, sizes[i], blocking, blocked); /* the first makes connections */
		measure(&rank, sizes[i], in_background, background);
		measure(&rank, sizes[i], blocking, blocked);
		if (esp_rank(rank.world) == 0)
			printf("%10llu  %10.1f %10.1f  %10.1f %10.1f\n", (unsigned long long)sizes[i], background[0], background[1],
			       blocked[0], blocked[1]);
	}
	must(esp_fini(job));
	sem_destroy(&rank.ended);
	free(rank.times_us);
	return 0;
}
