/*
 * How long the scheduler of asynchronous updates takes for a batch, on one core: order and bundles, or order and chains.
 *
 * Half as many hosts as updates, deadlines uniform from 1 to twice the updates, 8 aggregators, as the paper measures.
 * CPU time of the thread; the median and the greatest of several batches.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "fabric/batch.h"

#define RUNS 21u
#define MBIT UINT64_C(125000)

static struct batch_update updates[BATCH_UPDATES_MOST];
static struct batch batch;

static double cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static uint64_t draw_rate(struct rng *rng, bool all_differ)
{
	static const uint64_t kinds[] = {1000, 2500, 3300, 5000, 10000};

	return (all_differ ? 1000 + rng_below(rng, 9000) : kinds[rng_below(rng, 5)]) * MBIT;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double run_once(struct calendar *calendar, uint32_t count, enum batch_way way, bool all_differ, uint64_t seed)
{
	uint32_t hosts = count / 2;
	struct rng rng;
	const struct batch_config config = {.calendar = calendar, .hub = 2 * hosts, .way = way, .goal = BUNDLE_MEAN,
	                                    .next_batch = 1000 * NS_PER_S, .rng = &rng};

	rng_init(&rng, seed);
	for (uint32_t link = 0; link <= 2 * hosts; link++)
		(void)calendar_set_rate(calendar, link, 0, link < 2 * hosts ? draw_rate(&rng, all_differ) : 10000 * MBIT);
	for (uint32_t i = 0; i < count; i++)
		updates[i] = (struct batch_update){.host = i % hosts, .out = i % hosts, .in = hosts + i % hosts,
		                                   .bytes = 100000000, .deadline = (int64_t)rng_below(&rng, 2 * count) + 1};
	double begin = cpu_ms();
	batch_run(&config, updates, count, &batch);
	double took = cpu_ms() - begin;
	calendar_rollback(calendar, 0);
	return took;
}

static void measure(uint32_t count, enum batch_way way, bool all_differ)
{
	struct calendar *calendar;
	double took[RUNS];

	if (calendar_open(count + 1, 8192, 4 * count, &calendar, NULL) != ESP_OK)
		exit(1);
	for (uint32_t i = 0; i < RUNS; i++)
		took[i] = run_once(calendar, count, way, all_differ, i + 1);
	calendar_close(calendar);
	qsort(took, RUNS, sizeof(took[0]), by_value);
	printf("%4u updates  %-8s  %-14s  median %7.2f ms  most %7.2f ms  (%u sent, %u groups in the last)\n", count,
	       batch_way_names[way], all_differ ? "rates differ" : "five rates", took[RUNS / 2], took[RUNS - 1], batch.sent,
	       batch.groups);
}

int main(void)
{
	static const uint32_t counts[] = {30, 100, 500, 1000};

	for (uint32_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (uint32_t all_differ = 0; all_differ < 2; all_differ++) {
			measure(counts[i], BATCH_BUNDLES, all_differ);
			measure(counts[i], BATCH_CHAINS, all_differ);
		}
	}
	return 0;
}
