/*
 * steps_bench.c - steps of a training that is nothing but an allreduce: how long each takes, and what each rank moves in it.
 *
 *     steps_bench [--steps N] [--bytes N] [--plan NAME]
 *
 * A program for the ranks of a job (espalier run, lab run). The first rank prints a line per step:
 *
 *     step,seconds,retunes,moved,bytes of rank 0,bytes of rank 1,...
 *
 * The seconds are those of the slowest rank; bytes are what a rank sent through sockets in this step; retunes and moved are
 * counted from the start. Every sum is checked.
 */
#include <espalier/espalier.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct steps {
	struct esp_context *job;
	struct esp_group *world;
	uint32_t rank, size;
	uint64_t count; /* elements */
	const char *plan;
	float *data;
};

static void check(enum esp_status status)
{
	struct esp_error error = ESP_ERROR_INIT;

	if (status == ESP_OK)
		return;
	esp_last_error(&error);
	fprintf(stderr, "steps_bench: %s\n", error.text);
	exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void one_step(const struct steps *steps, uint64_t step)
{
	struct esp_call call = ESP_CALL_INIT;
	struct esp_work *work;

	for (uint64_t i = 0; i < steps->count; i++)
		steps->data[i] = (float)((i + step + steps->rank) % 64);
	call.collective = ESP_ALLREDUCE;
	call.type = ESP_F32;
	call.op = ESP_SUM;
	call.count = steps->count;
	call.in = steps->data;
	call.out = steps->data;
	call.plan = steps->plan;
	check(esp_start(steps->world, &call, &work));
	check(esp_wait(work, -1));
	esp_work_free(work);
}

static void check_sum(const struct steps *steps, uint64_t step)
{
	for (uint64_t i = 0; i < steps->count; i += 1 + i % 97) {
		float expected = 0;

		for (uint32_t rank = 0; rank < steps->size; rank++)
			expected += (float)((i + step + rank) % 64);
		if (steps->data[i] != expected) {
			fprintf(stderr, "steps_bench: step %" PRIu64 ", element %" PRIu64 ": %g instead of %g\n", step, i, (double)steps->data[i],
			        (double)expected);
			exit(1);
		}
	}
}

/* What the ranks tell each other after a step. */
struct told {
	double seconds;
	uint64_t bytes;
};

static void print_step(const struct steps *steps, uint64_t step, const struct told *all, const struct esp_stats *stats)
{
	double longest = 0;

	for (uint32_t i = 0; i < steps->size; i++)
		longest = all[i].seconds > longest ? all[i].seconds : longest;
	printf("%" PRIu64 ",%.6f,%" PRIu64 ",%" PRIu64, step, longest, stats->retunes, stats->moved_masters);
	for (uint32_t i = 0; i < steps->size; i++)
		printf(",%" PRIu64, all[i].bytes);
	printf("\n");
	fflush(stdout);
}

static void run(struct steps *steps, uint64_t count)
{
	struct told mine, *all = calloc(steps->size, sizeof(*all));
	struct esp_stats before = ESP_STATS_INIT, after = ESP_STATS_INIT;

	for (uint64_t step = 0; all && step < count; step++) {
		check(esp_barrier(steps->world));
		check(esp_get_stats(steps->job, &before));
		double began = now();
		one_step(steps, step);
		mine.seconds = now() - began;
		check(esp_get_stats(steps->job, &after));
		mine.bytes = after.network_bytes - before.network_bytes;
		check_sum(steps, step);
		check(esp_gather(steps->world, &mine, all, sizeof(mine), ESP_BYTES, 0));
		if (steps->rank == 0)
			print_step(steps, step, all, &after);
	}
	free(all);
}

int main(int argc, char **argv)
{
	struct steps steps = {.count = (4u << 20) / sizeof(float), .plan = NULL};
	uint64_t count = 20;

	for (int i = 1; i < argc; i++) {
		if (i + 1 < argc && strcmp(argv[i], "--steps") == 0) {
			count = strtoull(argv[++i], NULL, 10);
		} else if (i + 1 < argc && strcmp(argv[i], "--bytes") == 0) {
			steps.count = strtoull(argv[++i], NULL, 10) / sizeof(float);
		} else if (i + 1 < argc && strcmp(argv[i], "--plan") == 0) {
			steps.plan = argv[++i];
		} else {
			fprintf(stderr, "usage: steps_bench [--steps N] [--bytes N] [--plan NAME]\n");
			return 2;
		}
	}
	check(esp_init(NULL, &steps.job));
	steps.world = esp_world(steps.job);
	steps.rank = esp_rank(steps.world);
	steps.size = esp_size(steps.world);
	check(esp_alloc(steps.job, steps.count * sizeof(float), (void **)&steps.data));
	run(&steps, count);
	check(esp_fini(steps.job));
	return 0;
}
