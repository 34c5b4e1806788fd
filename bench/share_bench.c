/*
 * share_bench.c - what it costs to share memory that is there already, and to take it back.
 *
 *     espalier run -n 2 -- build/bench/share_bench [ROUNDS]
 *
 * For each size: malloc() and a write to every page, then memcpy() of all of it to other memory, esp_share(), the first
 * allreduce on it, esp_unshare() and free(); and esp_alloc() and esp_free() of as much. All ranks at the same time.
 * Rank 0 prints medians in milliseconds, the largest of any rank.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "espalier/espalier.h"

#define ROUNDS 101u

enum what { COPY, SHARE, CALL, UNSHARE, ALLOC, FREE, WHATS };

struct rank {
	struct esp_context *job;
	struct esp_group *world;
	unsigned rounds;
	double times_ms[WHATS][ROUNDS];
	uint64_t since_ns;
};

static void must(enum esp_status status)
{
	struct esp_error error = ESP_ERROR_INIT;

	if (status == ESP_OK)
		return;
	esp_last_error(&error);
	fprintf(stderr, "share_bench: %s\n", error.text);
	exit(1);
}

static void begin(struct rank *rank)
{
	must(esp_barrier(rank->world));
	rank->since_ns = clock_now_ns();
}

static void end(struct rank *rank, enum what what, unsigned round)
{
	rank->times_ms[what][round] = (double)(clock_now_ns() - rank->since_ns) * 1e-6;
}

static void *touched(size_t bytes)
{
	void *memory = malloc(bytes);

	if (!memory) {
		fprintf(stderr, "share_bench: no memory for %zu bytes\n", bytes);
		exit(1);
	}
	return memset(memory, 1, bytes);
}

static void share(struct rank *rank, size_t bytes, unsigned round)
{
	float *memory = touched(bytes), *other = touched(bytes);

	begin(rank);
	memcpy(other, memory, bytes);
	end(rank, COPY, round);
	free(other);
	begin(rank);
	must(esp_share(rank->job, memory, bytes));
	end(rank, SHARE, round);
	begin(rank);
	must(esp_allreduce(rank->world, memory, memory, bytes / sizeof(float), ESP_F32, ESP_MAX));
	end(rank, CALL, round);
	begin(rank);
	must(esp_unshare(rank->job, memory));
	end(rank, UNSHARE, round);
	free(memory);
}

static void alloc(struct rank *rank, size_t bytes, unsigned round)
{
	void *memory;

	begin(rank);
	must(esp_alloc(rank->job, bytes, &memory));
	end(rank, ALLOC, round);
	begin(rank);
	must(esp_free(rank->job, memory));
	end(rank, FREE, round);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(struct rank *rank, size_t bytes)
{
	double own[WHATS], most[WHATS];

	for (unsigned i = 0; i < rank->rounds; i++) {
		share(rank, bytes, i);
		alloc(rank, bytes, i);
	}
	for (unsigned i = 0; i < WHATS; i++) {
		qsort(rank->times_ms[i], rank->rounds, sizeof(double), by_value);
		own[i] = rank->times_ms[i][rank->rounds / 2];
	}
	must(esp_allreduce(rank->world, own, most, WHATS, ESP_F64, ESP_MAX));
	if (esp_rank(rank->world) != 0)
		return;
	printf("%8zu KiB", bytes >> 10);
	for (unsigned i = 0; i < WHATS; i++)
		printf("  %9.3f", most[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {1u << 20, 16u << 20, 100u << 20};
	static struct rank rank;

	rank.rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 9;
	if (rank.rounds < 1 || rank.rounds > ROUNDS) {
		fprintf(stderr, "usage: %s [ROUNDS], at most %u\n", argv[0], ROUNDS);
		return 2;
	}
	must(esp_init(NULL, &rank.job));
	rank.world = esp_world(rank.job);
	if (esp_rank(rank.world) == 0)
		printf("%12s  %9s  %9s  %9s  %9s  %9s  %9s   (ms, %u ranks)\n", "", "memcpy", "esp_share", "first call",
		       "unshare", "esp_alloc", "esp_free", esp_size(rank.world));
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		measure(&rank, sizes[i]);
	must(esp_fini(rank.job));
	return 0;
}
