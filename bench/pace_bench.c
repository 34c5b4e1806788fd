/*
 * pace_bench.c - sums again and again, and says how many sums there were by when: for what disturbs a job now and then.
 *
 *     espalier run -n 4 --no-prefix -- build/bench/pace_bench [--bytes N]
 *
 * The first rank prints a line each PRINT_NS: the monotonic clock in seconds, and the calls that have ended by then.
 * SIGUSR1 to any rank: all leave after the same call. In each call some elements of the sum are checked, others each
 * time.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "espalier/espalier.h"

#define PRINT_NS (10 * NS_PER_MS)
#define CHECKED 64u /* elements of a call */

struct pace {
	struct esp_group *world;
	uint32_t rank, size;
	uint64_t count; /* elements; the last one says whether to leave */
	float *in, *out;
};

static void must(enum esp_status status)
{
	struct esp_error error = ESP_ERROR_INIT;

	if (status == ESP_OK)
		return;
	esp_last_error(&error);
	fprintf(stderr, "pace_bench: %s\n", error.text);
	exit(1);
}

static void check(const struct pace *pace, uint64_t call)
{
	for (uint64_t i = 0; i < CHECKED; i++) {
		uint64_t at = (call * 7919 + i * 104729) % (pace->count - 1);
		uint64_t expected = pace->size * (at % 64) + pace->size * (pace->size - 1) / 2;

		if (pace->out[at] != (float)expected) {
			fprintf(stderr, "pace_bench: call %" PRIu64 ", element %" PRIu64 ": %g instead of %" PRIu64 "\n", call, at,
			        (double)pace->out[at], expected);
			exit(1);
		}
	}
}

static volatile sig_atomic_t is_over;

static void end(int number)
{
	(void)number;
	is_over = 1;
}

static void keep_on(struct pace *pace)
{
	uint64_t printed = 0;

	for (uint64_t call = 0; call == 0 || pace->out[pace->count - 1] == 0; call++) {
		uint64_t now = clock_now_ns();

		if (pace->rank == 0 && now >= printed + PRINT_NS) {
			printf("%.6f %" PRIu64 "\n", (double)now / (double)NS_PER_S, call);
			fflush(stdout);
			printed = now;
		}
		pace->in[pace->count - 1] = is_over ? 1 : 0;
		must(esp_allreduce(pace->world, pace->in, pace->out, pace->count, ESP_F32, ESP_SUM));
		check(pace, call);
	}
}

int main(int argc, char **argv)
{
	struct pace pace = {.count = (1u << 20) / sizeof(float)};
	struct esp_context *job;

	if (argc == 3 && strcmp(argv[1], "--bytes") == 0)
		pace.count = strtoull(argv[2], NULL, 10) / sizeof(float);
	if ((argc != 1 && argc != 3) || pace.count < 2) {
		fprintf(stderr, "usage: pace_bench [--bytes N]   N: 8 or more\n");
		return 2;
	}
	must(esp_init(NULL, &job));
	pace.world = esp_world(job);
	pace.rank = esp_rank(pace.world);
	pace.size = esp_size(pace.world);
	must(esp_alloc(job, pace.count * sizeof(float), (void **)&pace.in));
	must(esp_alloc(job, pace.count * sizeof(float), (void **)&pace.out));
	for (uint64_t i = 0; i + 1 < pace.count; i++)
		pace.in[i] = (float)(i % 64 + pace.rank);
	signal(SIGUSR1, end);
	keep_on(&pace);
	must(esp_fini(job));
	return 0;
}
