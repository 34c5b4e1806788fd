/*
 * smoke_test.c - every collective once, small and large, over memory and over sockets.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "job.h"

static int32_t value(uint32_t rank, uint64_t i)
{
	return (int32_t)((rank + 1) * 1000003u + i * 7u);
}

static void fill(int32_t *data, uint32_t rank, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		data[i] = value(rank, i);
}

static int32_t sum(uint32_t size, uint64_t i)
{
	uint32_t result = 0;

	for (uint32_t r = 0; r < size; r++)
		result += (uint32_t)value(r, i);
	return (int32_t)result;
}

static void check_sum(const int32_t *data, uint32_t size, uint64_t first, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		CHECK_MSG(data[i] == sum(size, first + i), "element %llu", (unsigned long long)i);
}

static void all_once(struct job_rank *rank, uint64_t count, bool shared)
{
	uint32_t n = rank->size, me = rank->rank;
	uint64_t bytes = (n * count + 1) * sizeof(int32_t);
	int32_t *in = NULL, *out = NULL;

	if (shared) {
		OK(esp_alloc(rank->context, bytes, (void **)&in));
		OK(esp_alloc(rank->context, bytes, (void **)&out));
	} else {
		in = malloc(bytes);
		out = malloc(bytes);
	}
	fill(in, me, count);
	OK(esp_allreduce(rank->world, in, out, count, ESP_I32, ESP_SUM));
	check_sum(out, n, 0, count);
	OK(esp_allreduce(rank->world, in, in, count, ESP_I32, ESP_SUM));
	check_sum(in, n, 0, count);
	fill(in, me, n * count);
	OK(esp_reduce_scatter(rank->world, in, out, count, ESP_I32, ESP_SUM));
	check_sum(out, n, me * count, count);
	OK(esp_allgather(rank->world, in, out, count, ESP_I32));
	for (uint32_t from = 0; from < n; from++) {
		for (uint64_t i = 0; i < count; i++)
			CHECK(out[from * count + i] == value(from, i));
	}
	fill(out, me, count);
	OK(esp_broadcast(rank->world, out, count, ESP_I32, n - 1));
	for (uint64_t i = 0; i < count; i++)
		CHECK(out[i] == value(n - 1, i));
	OK(esp_reduce(rank->world, in, out, count, ESP_I32, ESP_SUM, n / 2));
	if (me == n / 2)
		check_sum(out, n, 0, count);
	OK(esp_gather(rank->world, in, out, count, ESP_I32, 0));
	for (uint32_t from = 0; me == 0 && from < n; from++) {
		for (uint64_t i = 0; i < count; i++)
			CHECK(out[from * count + i] == value(from, i));
	}
	OK(esp_scatter(rank->world, in, out, count, ESP_I32, 0));
	for (uint64_t i = 0; i < count; i++)
		CHECK(out[i] == value(0, me * count + i));
	OK(esp_alltoall(rank->world, in, out, count, ESP_I32));
	for (uint32_t from = 0; from < n; from++) {
		for (uint64_t i = 0; i < count; i++)
			CHECK(out[from * count + i] == value(from, me * count + i));
	}
	OK(esp_barrier(rank->world));
	if (shared) {
		OK(esp_free(rank->context, in));
		OK(esp_free(rank->context, out));
	} else {
		free(in);
		free(out);
	}
}

static void body(struct job_rank *rank)
{
	static const uint64_t counts[] = {0, 1, 7, 300, 5000, 100000, 600000};

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		all_once(rank, counts[i], false);
		all_once(rank, counts[i], true);
	}
}

/* Of this process, and one more to look. */
static unsigned count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	CHECK(folder != NULL);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

int main(void)
{
	static const char *const tcp[] = {"transport=tcp", NULL};
	static const char *const lanes[] = {"lanes=2", "chunk_bytes=16K", NULL};
	unsigned descriptors = count_descriptors();

	for (uint32_t size = 1; size <= 5; size++) {
		job_run(size, NULL, body, NULL);
		job_run(size, tcp, body, NULL);
		job_run(size, lanes, body, NULL);
	}
	CHECK_U64(count_descriptors(), descriptors); /* every port is closed again, too */
	return 0;
}
