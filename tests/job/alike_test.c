/*
 * alike_test.c - calls that go on with what one like them has left behind: other memory, other threads, other groups.
 */
#include <pthread.h>

#include "base/check.h"
#include "job.h"

#define ALIKE_THREADS 3

struct alike_thread {
	struct job_rank *rank;
	struct esp_group *group;
	pthread_t thread;
};

/* Calls that are alike on other memory, in place and not, among others that differ from them in one thing each. */
static void alike_calls(struct job_rank *rank, struct esp_group *group, int turns)
{
	int32_t a[8], b[8], c[9], n = (int32_t)rank->size;

	for (int turn = 0; turn < turns; turn++) {
		int32_t *in = turn % 2 ? a : b, *out = turn % 3 ? c : in;
		bool is_max = turn % 5 == 4;
		uint64_t count = turn % 7 == 6 ? 7 : 8;

		for (int i = 0; i < 8; i++)
			in[i] = turn * 10 + i + (is_max ? (int32_t)rank->rank : 0);
		c[8] = 12345;
		out[7] = in[7];
		OK(esp_allreduce(group, in, out, count, ESP_I32, is_max ? ESP_MAX : ESP_SUM));
		for (int i = 0; i < (int)count; i++)
			CHECK(out[i] == (is_max ? turn * 10 + i + n - 1 : n * (turn * 10 + i)));
		CHECK(count == 8 || out[7] == turn * 10 + 7 + (is_max ? (int32_t)rank->rank : 0)); /* not asked for */
		CHECK(c[8] == 12345);
		a[0] = turn;
		OK(esp_broadcast(group, a, 1, ESP_I32, (uint32_t)turn % rank->size));
		CHECK(a[0] == turn);
	}
}

static void *run_alike(void *argument)
{
	struct alike_thread *thread = argument;

	alike_calls(thread->rank, thread->group, 60);
	return NULL;
}

/* A plain call goes on with what one before it has left behind, on any thread, in every group; what a group has kept goes with it. */
static void alike(struct job_rank *rank)
{
	struct alike_thread threads[ALIKE_THREADS];
	struct esp_group *group;

	for (int i = 0; i < 3; i++) {
		OK(esp_group_split(rank->world, 0, 0, &group));
		alike_calls(rank, group, 20);
		OK(esp_group_free(group));
		alike_calls(rank, rank->world, 20);
	}
	for (int i = 0; i < ALIKE_THREADS; i++) {
		threads[i] = (struct alike_thread){.rank = rank};
		OK(esp_group_split(rank->world, 0, 0, &threads[i].group));
	}
	for (int i = 0; i < ALIKE_THREADS; i++)
		CHECK(pthread_create(&threads[i].thread, NULL, run_alike, &threads[i]) == 0);
	for (int i = 0; i < ALIKE_THREADS; i++)
		CHECK(pthread_join(threads[i].thread, NULL) == 0);
	for (int i = 0; i < ALIKE_THREADS; i++)
		OK(esp_group_free(threads[i].group));
}

int main(void)
{
	static const char *const sockets[] = {"transport=tcp", NULL};

	for (uint32_t size = 1; size <= 3; size++) {
		job_run(size, NULL, alike, NULL);
		job_run(size, sockets, alike, NULL);
	}
	return 0;
}
