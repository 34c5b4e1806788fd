/*
 * crc_bench.c - how fast checksums are, next to copying the same bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "wire/crc32c.h"

#define BYTES (64u * 1024)
#define CALLS 2000u
#define ROUNDS 9

static uint8_t source[BYTES], target[BYTES];
static volatile uint32_t sink;

static void run_crc(void)
{
	sink = crc32c(sink, source, BYTES);
}

static void run_portable(void)
{
	sink = crc32c_portable(sink, source, BYTES);
}

static void run_copy(void)
{
	memcpy(target, source, BYTES);
	sink = target[sink % BYTES];
}

static double gigabytes_per_second(void (*run)(void))
{
	uint64_t begin = clock_now_ns();

	for (unsigned i = 0; i < CALLS; i++)
		run();
	return (double)BYTES * CALLS / (double)(clock_now_ns() - begin);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(void)
{
	static void (*const runs[])(void) = {run_crc, run_portable, run_copy};
	static const char *const names[] = {"crc32c", "crc32c by tables", "memcpy"};
	double speeds[3][ROUNDS];

	memset(source, 0x5a, sizeof(source));
	for (int round = 0; round < ROUNDS; round++) { /* interleaved */
		for (int i = 0; i < 3; i++)
			speeds[i][round] = gigabytes_per_second(runs[i]);
	}
	printf("chunks of %u KiB in cache, GB/s, median of %d (least, most)\n", BYTES / 1024, ROUNDS);
	for (int i = 0; i < 3; i++) {
		qsort(speeds[i], ROUNDS, sizeof(double), by_value);
		printf("%-18s %6.1f (%.1f, %.1f)\n", names[i], speeds[i][ROUNDS / 2], speeds[i][0], speeds[i][ROUNDS - 1]);
	}
	return 0;
}
