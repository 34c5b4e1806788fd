/*
 * budget_test.c - what a job may take: descriptors, threads, and memory that does not grow.
 *
 * All ranks are in this process, so what is counted is divided by their number.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"
#include "job.h"

static unsigned count_entries(const char *path)
{
	DIR *folder = opendir(path);
	unsigned count = 0;

	CHECK(folder != NULL);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count - 2;
}

/* What the ranks of this process share with each other: reserved memory counts, whether or not anybody has touched it. */
static uint64_t shared_bytes(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint64_t bytes = 0;
	ino_t seen[64];
	unsigned count = 0;

	CHECK(folder != NULL);
	for (struct dirent *entry; (entry = readdir(folder));) {
		char path[300], target[64] = "";
		struct stat about;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		if (readlink(path, target, sizeof(target) - 1) < 0 || strncmp(target, "/memfd:espalier", 15) != 0 || stat(path, &about) != 0)
			continue;
		bool is_new = true; /* there are two descriptors of each */
		for (unsigned i = 0; i < count; i++)
			is_new = is_new && seen[i] != about.st_ino;
		if (is_new && count < 64) {
			seen[count++] = about.st_ino;
			bytes += (uint64_t)about.st_blocks * 512;
		}
	}
	closedir(folder);
	return bytes;
}

static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long long size, resident;

	CHECK(file && fscanf(file, "%llu %llu", &size, &resident) == 2);
	fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- descriptors and threads ---- */

static unsigned before_descriptors;

/* By their names, as sanitizers have threads too. */
static unsigned count_own_threads(void)
{
	DIR *folder = opendir("/proc/self/task");
	unsigned count = 0;

	CHECK(folder != NULL);
	for (struct dirent *entry; (entry = readdir(folder));) {
		char path[300], name[32] = "";

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		FILE *file = fopen(path, "r"); /* there are entries that are no threads, and threads that end */
		if (file && fgets(name, sizeof(name), file))
			count += strncmp(name, "esp-", 4) == 0;
		if (file)
			fclose(file);
	}
	closedir(folder);
	return count;
}

static void few_descriptors(struct job_rank *rank)
{
	int32_t data[5000] = {0};

	/* Everybody talks to everybody. */
	OK(esp_allreduce(rank->world, data, data, 5000, ESP_I32, ESP_SUM));
	OK(esp_alltoall(rank->world, data, data + 2500, 2000 / rank->size, ESP_I32));
	job_meet(rank);
	if (rank->rank == 0) {
		unsigned descriptors = count_entries("/proc/self/fd") - before_descriptors;
		unsigned threads = count_own_threads();

		CHECK_MSG(descriptors <= rank->size * (32 + 4 * (rank->size - 1)), "%u descriptors for %u ranks", descriptors,
		          rank->size);
		CHECK_MSG(threads > 0 && threads <= rank->size * 2, "%u threads for %u ranks of one lane", threads, rank->size);
	}
	job_meet(rank);
}

/* ---- memory ---- */

/* A sanitizer keeps what is freed for a while: there is no telling what the library would take without it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GROWTH_MOST = 1 << 30 };
#else
enum { GROWTH_MOST = 1 << 20 };
#endif

static void mixed_calls(struct job_rank *rank, struct rng *rng, uint64_t calls, int32_t *data, uint64_t most)
{
	for (uint64_t i = 0; i < calls; i++) {
		uint64_t count = rng_chance(rng, 1, 10) ? rng_below(rng, most) : rng_below(rng, 3000);

		switch (rng_below(rng, 4)) {
		case 0:
			OK(esp_broadcast(rank->world, data, count, ESP_I32, 0));
			break;
		case 1:
			OK(esp_barrier(rank->world));
			break;
		default:
			OK(esp_allreduce(rank->world, data, data, count, ESP_I32, ESP_SUM));
			break;
		}
	}
}

static void no_growth(struct job_rank *rank)
{
	uint64_t calls = *(uint64_t *)rank->argument, most = 40000;
	int32_t *data = calloc(most, sizeof(*data));
	struct rng rng;
	uint64_t before = 0;

	rng_init(&rng, 7);
	mixed_calls(rank, &rng, calls / 4, data, most);
	job_meet(rank);
	if (rank->rank == 0)
		before = resident_bytes();
	job_meet(rank);
	mixed_calls(rank, &rng, calls, data, most);
	job_meet(rank);
	if (rank->rank == 0) {
		uint64_t after = resident_bytes();

		CHECK_MSG(after <= before + (uint64_t)GROWTH_MOST * rank->size, "grew by %llu bytes over %llu calls of %u ranks",
		          (unsigned long long)(after - before), (unsigned long long)calls, rank->size);
	}
	job_meet(rank);
	free(data);
}

static void many_groups(struct job_rank *rank)
{
	struct esp_group *group;
	uint64_t before_bytes = 0;
	unsigned before_fds = 0;
	int32_t data[100] = {0};

	for (int i = 0; i < 1200; i++) {
		if (i == 200) {
			job_meet(rank);
			before_bytes = resident_bytes();
			before_fds = count_entries("/proc/self/fd");
			job_meet(rank);
		}
		OK(esp_group_split(rank->world, 0, 0, &group));
		OK(esp_allreduce(group, data, data, 100, ESP_I32, ESP_SUM));
		OK(esp_group_free(group));
	}
	job_meet(rank);
	if (rank->rank == 0) {
		CHECK(count_entries("/proc/self/fd") <= before_fds + rank->size); /* ourselves looking */
		CHECK_MSG(resident_bytes() <= before_bytes + (uint64_t)GROWTH_MOST * rank->size, "grew by %llu bytes over 1000 groups",
		          (unsigned long long)(resident_bytes() - before_bytes));
	}
	job_meet(rank);
}

/* At once: what they take together is bounded, all of them work, and nothing is left of them. */
static void many_groups_at_once(struct job_rank *rank)
{
	enum { GROUPS = 1000 };
	struct esp_group **groups = calloc(GROUPS, sizeof(struct esp_group *));
	int32_t *data = calloc(30000, sizeof(*data));
	uint64_t before = 0;
	unsigned before_fds = 0;

	OK(esp_barrier(rank->world));
	job_meet(rank);
	if (rank->rank == 0) {
		before = shared_bytes();
		before_fds = count_entries("/proc/self/fd");
	}
	job_meet(rank);
	for (uint32_t i = 0; i < GROUPS; i++)
		OK(esp_group_split(rank->world, 0, 0, &groups[i]));
	for (uint32_t i = 0; i < GROUPS; i += 37) { /* with boards of full size, with small ones */
		static const uint64_t counts[] = {1, 500, 2000, 30000};

		for (unsigned k = 0; k < 4; k++) {
			for (uint64_t j = 0; j < counts[k]; j++)
				data[j] = (int32_t)j;
			OK(esp_allreduce(groups[i], data, data, counts[k], ESP_I32, ESP_SUM));
			CHECK(data[counts[k] - 1] == (int32_t)((counts[k] - 1) * rank->size));
		}
	}
	job_meet(rank);
	if (rank->rank == 0) {
		uint64_t grown = shared_bytes() - before;

		CHECK_MSG(grown <= rank->size * (UINT64_C(64) << 20), "%llu bytes for %d groups of %u ranks", (unsigned long long)grown,
		          GROUPS, rank->size);
		CHECK(count_entries("/proc/self/fd") <= before_fds + rank->size);
	}
	job_meet(rank);
	for (uint32_t i = 0; i < GROUPS; i++)
		OK(esp_group_free(groups[i]));
	job_meet(rank);
	if (rank->rank == 0)
		CHECK_MSG(shared_bytes() <= before + rank->size * (UINT64_C(12) << 20), "%llu bytes are left of %d groups",
		          (unsigned long long)(shared_bytes() - before), GROUPS);
	job_meet(rank);
	free(groups);
	free(data);
}

int main(int argc, char **argv)
{
	static const char *const memory[] = {"lanes=1", NULL};
	static const char *const sockets[] = {"lanes=1", "transport=tcp", NULL};
	static const char *const *const all[] = {memory, sockets};
	uint64_t calls = test_option(argc, argv, "--count", 4000);

	for (unsigned i = 0; i < 2; i++) {
		for (uint32_t size = 2; size <= 6; size += 2) {
			before_descriptors = count_entries("/proc/self/fd");
			job_run(size, all[i], few_descriptors, NULL);
		}
		job_run(3, all[i], no_growth, &calls);
		job_run(2, all[i], many_groups, NULL);
		job_run(2, all[i], many_groups_at_once, NULL);
	}
	return 0;
}
