/*
 * idle_bench.c - what ranks cost that have nothing to do: processor time and memory, over the public API.
 *
 *     espalier run -n 4 -- build/bench/idle_bench [SECONDS]
 *
 * All ranks are idle for a while; then rank 0 is late, for as long, to a small call, a large one, and a message. Rank 0 prints
 * the most processor time, in per cent of a core, that any rank used meanwhile (in the calls: any of those that waited), and
 * the most memory that a rank keeps after a large call, beyond what it had before it joined and its own buffers.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "espalier/espalier.h"

#define LARGE (4u << 20) /* elements */

struct rank {
	struct esp_group *world;
	float *data;
	double seconds;
};

static void must(enum esp_status status)
{
	struct esp_error error = ESP_ERROR_INIT;

	if (status == ESP_OK)
		return;
	esp_last_error(&error);
	fprintf(stderr, "idle_bench: %s\n", error.text);
	exit(1);
}

static double processor_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static double resident_mib(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file) {
		if (fscanf(file, "%*d %ld", &pages) != 1)
			pages = 0;
		fclose(file);
	}
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void rest(double seconds)
{
	struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	nanosleep(&time, NULL);
}

static void small_call(struct rank *rank)
{
	must(esp_barrier(rank->world));
}

static void large_call(struct rank *rank)
{
	must(esp_allreduce(rank->world, rank->data, rank->data, LARGE, ESP_F32, ESP_SUM));
}

static void message(struct rank *rank)
{
	for (uint32_t i = 1; esp_rank(rank->world) == 0 && i < esp_size(rank->world); i++)
		must(esp_send(rank->world, rank->data, 64, i, 1));
	if (esp_rank(rank->world) != 0)
		must(esp_recv(rank->world, rank->data, 64, 0, 1, NULL, NULL));
}

/* call: NULL: nobody does anything. */
static void measure(struct rank *rank, const char *what, void (*call)(struct rank *rank))
{
	bool is_late = esp_rank(rank->world) == 0 && call;

	must(esp_barrier(rank->world));
	uint64_t begin_ns = clock_now_ns();
	double used = processor_seconds();
	if (is_late || !call)
		rest(rank->seconds);
	if (call)
		call(rank);
	double share = 100 * (processor_seconds() - used) / ((double)(clock_now_ns() - begin_ns) * 1e-9), most;
	share = is_late ? 0 : share;
	must(esp_allreduce(rank->world, &share, &most, 1, ESP_F64, ESP_MAX));
	if (esp_rank(rank->world) == 0)
		printf("%-34s %6.2f %% of a core\n", what, most);
}

int main(int argc, char **argv)
{
	struct rank rank = {.seconds = argc > 1 ? atof(argv[1]) : 3};
	struct esp_context *job;
	double before = resident_mib(), most;

	if (rank.seconds <= 0) {
		fprintf(stderr, "usage: %s [SECONDS]\n", argv[0]);
		return 2;
	}
	rank.data = malloc(LARGE * sizeof(float));
	if (!rank.data)
		return 1;
	memset(rank.data, 0, LARGE * sizeof(float));
	must(esp_init(NULL, &job));
	rank.world = esp_world(job);
	large_call(&rank); /* connections are made when they are needed */
	measure(&rank, "idle", NULL);
	measure(&rank, "waiting in a small call", small_call);
	measure(&rank, "waiting in a large call", large_call);
	measure(&rank, "waiting for a message", message);
	double kept = resident_mib() - before - (double)LARGE * sizeof(float) / (1 << 20);
	must(esp_allreduce(rank.world, &kept, &most, 1, ESP_F64, ESP_MAX));
	if (esp_rank(rank.world) == 0)
		printf("%-34s %6.1f MiB, what it shares with others and the library's code included\n", "memory of a rank", most);
	must(esp_fini(job));
	free(rank.data);
	return 0;
}
