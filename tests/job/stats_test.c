/*
 * stats_test.c - what a job counts: calls, bytes and times, by kind and size.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "job.h"

static struct esp_call_stats stats[128];

static const struct esp_call_stats *find(uint32_t count, const char *operation, uint64_t bytes)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(stats[i].operation, operation) == 0 && stats[i].least_bytes <= bytes && bytes <= stats[i].most_bytes)
			return &stats[i];
	}
	check_fail(__FILE__, __LINE__, "no %s of %llu bytes", operation, (unsigned long long)bytes);
}

static uint32_t get(struct esp_context *context)
{
	uint32_t count;

	for (uint32_t i = 0; i < 128; i++)
		stats[i] = (struct esp_call_stats)ESP_CALL_STATS_INIT;
	OK(esp_get_call_stats(context, stats, 128, &count));
	CHECK(count <= 128);
	return count;
}

static void check_all(uint32_t count, uint32_t size)
{
	const struct esp_call_stats *small = find(count, "allreduce", 40), *large = find(count, "allreduce", 4 << 20);

	CHECK_U64(small->calls, 100);
	CHECK_U64(small->bytes, 4000);
	CHECK_U64(small->bus_bytes, 100 * (80 * (size - 1) / size));
	CHECK(small->min_ns > 0 && small->min_ns <= small->p50_ns && small->p50_ns <= small->p99_ns && small->p99_ns <= small->max_ns);
	CHECK(small->time_ns >= 100 * small->min_ns && small->time_ns <= 100 * small->max_ns && small->waited_ns <= small->time_ns);
	CHECK_U64(large->calls, 3);
	CHECK_U64(large->bytes, 3 * (4 << 20));
	CHECK_U64(find(count, "barrier", 0)->calls, 2);
	CHECK_U64(find(count, "allgather", 8 * size)->bytes, 8 * size);
	CHECK_U64(find(count, "gather", 8 * size)->bytes, 8 * size);
	CHECK_U64(find(count, "broadcast", 1000)->failed, 0);
	for (uint32_t i = 0; i < count; i++)
		CHECK(stats[i].calls > 0 && stats[i].failed == 0);
}

static void calls(struct job_rank *rank)
{
	static char all[64][64];
	float *data = calloc(1, 4 << 20);
	uint64_t mine = rank->rank, received;
	uint32_t none = 7, count;

	CHECK(data);
	for (int i = 0; i < 100; i++)
		OK(esp_allreduce(rank->world, data, data, 10, ESP_F32, ESP_SUM));
	for (int i = 0; i < 3; i++)
		OK(esp_allreduce(rank->world, data, data, 1 << 20, ESP_F32, ESP_SUM));
	OK(esp_barrier(rank->world));
	OK(esp_allgather(rank->world, &mine, all[rank->rank], 1, ESP_U64));
	OK(esp_gather(rank->world, &mine, all[rank->rank], 1, ESP_U64, 0));
	OK(esp_broadcast(rank->world, data, 1000, ESP_BYTES, 0));
	if (rank->rank == 0)
		OK(esp_send(rank->world, data, 500, 1, 3));
	if (rank->rank == 1)
		OK(esp_recv(rank->world, data, 600, 0, 3, &received, NULL));
	OK(esp_barrier(rank->world));
	job_meet(rank);
	if (rank->rank <= 1) { /* one after the other: they share the array */
		if (rank->rank == 1)
			job_meet(rank);
		uint32_t found = get(rank->context);
		check_all(found, rank->size);
		const struct esp_call_stats *message = find(found, rank->rank == 0 ? "send" : "receive", 500);
		CHECK(message->calls == 1 && message->bytes == 500 && message->bus_bytes == 500);
		OK(esp_get_call_stats(rank->context, NULL, 0, &none));
		CHECK_U64(none, found);
		stats[1] = (struct esp_call_stats)ESP_CALL_STATS_INIT;
		OK(esp_get_call_stats(rank->context, stats, 1, &count));
		CHECK(count == found && stats[1].calls == 0);
		EXPECT(esp_get_call_stats(rank->context, NULL, 1, &none), ESP_EINVAL);
		EXPECT(esp_get_call_stats(rank->context, stats, 1, NULL), ESP_EINVAL);
		if (rank->rank == 0)
			job_meet(rank);
	} else {
		job_meet(rank);
	}
	job_meet(rank);
	free(data);
}

int main(void)
{
	static const char *const tcp[] = {"transport=tcp", NULL};

	job_run(2, NULL, calls, NULL);
	job_run(3, NULL, calls, NULL);
	job_run(3, tcp, calls, NULL);
	return 0;
}
