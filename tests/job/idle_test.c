/*
 * idle_test.c - a host's own work goes on while its threads wait: struct esp_options.idle.
 *
 * Rank 1 makes each call only once rank 0, which waits in it, has been called back: without that, both would wait until
 * the deadline. The host's work of rank 0 is here that rank 1 may go on. It may use all the cores that it had, whatever seat (src/node/progress/core_affinity.h) rank 0
 * takes while it waits: there are more ranks than cores.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "job.h"

static atomic_uint idled;   /* so often was rank 0 called back      */
static atomic_uint entered; /* so many calls has rank 0 begun       */
static const char *transport;
static uint16_t port;
static cpu_set_t cores; /* of all threads */

#define RANKS 3u

static void check_cores(void)
{
	cpu_set_t now;

	CHECK(sched_getaffinity(0, sizeof(now), &now) == 0 && CPU_EQUAL(&now, &cores));
}

static void idle(void *context)
{
	CHECK(context == &idled);
	check_cores();
	/* Only what comes after rank 0 has begun to wait counts: the rest may be of the call before. */
	if (atomic_load(&entered) > atomic_load(&idled))
		atomic_store(&idled, atomic_load(&entered));
}

static void call(struct esp_group *world, uint32_t rank, unsigned number, uint64_t count, float *data)
{
	struct esp_call made = ESP_CALL_INIT;
	struct esp_work *work;

	made.collective = ESP_ALLREDUCE;
	made.count = count;
	made.in = data;
	made.out = data;
	for (uint64_t i = 0; i < count; i++)
		data[i] = 1;
	if (rank == 0)
		atomic_store(&entered, number);
	while (rank == 1 && atomic_load(&idled) < number)
		sched_yield();
	if (number % 2 == 0) {
		OK(esp_run(world, &made));
	} else {
		OK(esp_start(world, &made, &work));
		OK(esp_wait(work, -1));
		esp_work_free(work);
	}
	CHECK(data[0] == RANKS && data[count - 1] == RANKS);
	check_cores();
}

static void *take_part(void *argument)
{
	uint32_t rank = *(uint32_t *)argument;
	const char *settings[] = {transport, "deadline_seconds=60", NULL};
	char leader[32];
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *context;
	float *data = malloc((size_t)4 << 20);
	unsigned number = 0;

	snprintf(leader, sizeof(leader), "127.0.0.1:%u", port);
	options.rank = rank;
	options.size = RANKS;
	options.leader = leader;
	options.settings = settings;
	options.idle = rank == 0 ? idle : NULL;
	options.idle_context = &idled;
	CHECK(data);
	OK(esp_init(&options, &context));
	for (unsigned i = 0; i < 4; i++) {
		call(esp_world(context), rank, ++number, 1, data);
		call(esp_world(context), rank, ++number, (1 << 20) - i, data);
		call(esp_world(context), rank, ++number, 1000, data);
	}
	OK(esp_fini(context));
	free(data);
	return NULL;
}

static void run(const char *how)
{
	pthread_t threads[RANKS];
	uint32_t ranks[RANKS] = {0, 1, 2};

	transport = how;
	port = job_free_port();
	atomic_store(&idled, 0);
	atomic_store(&entered, 0);
	for (uint32_t i = 0; i < RANKS; i++)
		CHECK(pthread_create(&threads[i], NULL, take_part, &ranks[i]) == 0);
	for (uint32_t i = 0; i < RANKS; i++)
		pthread_join(threads[i], NULL);
}

/* Two, if there are. */
static void take_cores(void)
{
	CHECK(sched_getaffinity(0, sizeof(cores), &cores) == 0);
	for (size_t core = CPU_SETSIZE; core-- > 0 && CPU_COUNT(&cores) > 2;)
		CPU_CLR(core, &cores);
	CHECK(sched_setaffinity(0, sizeof(cores), &cores) == 0);
}

int main(void)
{
	take_cores();
	run("transport=auto");
	run("transport=tcp");
	return 0;
}
