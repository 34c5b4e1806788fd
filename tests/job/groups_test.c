/*
 * groups_test.c - groups come and go, and work at the same time; keyed calls; messages between two ranks.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "job.h"

/* ---- groups ---- */

static int64_t sum_of_ranks(struct esp_group *group)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < esp_size(group); i++)
		sum += esp_world_rank(group, i);
	return sum;
}

static void check_group(struct job_rank *rank, struct esp_group *group, uint64_t count)
{
	int64_t *data = malloc(count * sizeof(*data));

	CHECK(esp_world_rank(group, esp_rank(group)) == rank->rank);
	for (uint64_t i = 0; i < count; i++)
		data[i] = rank->rank;
	OK(esp_allreduce(group, data, data, count, ESP_I64, ESP_SUM));
	for (uint64_t i = 0; i < count; i++)
		CHECK(data[i] == sum_of_ranks(group));
	free(data);
}

static void splits(struct job_rank *rank)
{
	struct esp_group *half, *reversed, *none, *pair;
	uint32_t list[2] = {rank->size - 1, 0};

	OK(esp_group_split(rank->world, rank->rank % 2, 0, &half));
	OK(esp_group_split(rank->world, 0, -(int64_t)rank->rank, &reversed));
	CHECK(esp_rank(reversed) == rank->size - 1 - rank->rank);
	OK(esp_group_split(rank->world, rank->rank == 0 ? -1 : 5, 0, &none));
	CHECK((none == NULL) == (rank->rank == 0));
	OK(esp_group_create(rank->world, list, rank->size > 1 ? 2 : 1, &pair));
	CHECK((pair != NULL) == (rank->rank == 0 || rank->rank == rank->size - 1));
	for (uint64_t count = 1; count <= 40000; count *= 200) {
		check_group(rank, half, count);
		check_group(rank, reversed, count);
		if (none)
			check_group(rank, none, count);
		if (pair)
			check_group(rank, pair, count);
	}
	EXPECT(esp_group_free(rank->world), ESP_ESTATE);
	OK(esp_group_free(half));
	OK(esp_group_free(reversed));
	if (none)
		OK(esp_group_free(none));
	if (pair)
		OK(esp_group_free(pair));
	EXPECT(esp_group_create(rank->world, (uint32_t[]){0, rank->size}, 2, &pair), ESP_EINVAL);
	EXPECT(esp_group_create(rank->world, (uint32_t[]){0, 0}, 2, &pair), ESP_EINVAL);
	for (int i = 0; i < 50; i++) {
		OK(esp_group_split(rank->world, 0, 0, &half));
		check_group(rank, half, 1 + (uint64_t)i * 100);
		OK(esp_group_free(half));
	}
}

struct user {
	struct job_rank *rank;
	struct esp_group *group;
	pthread_t thread;
};

static void *use_group(void *argument)
{
	struct user *user = argument;

	for (uint64_t i = 0; i < 40; i++)
		check_group(user->rank, user->group, 1 + i * i * 20);
	return NULL;
}

/* Several groups at one time, each by a thread of its own. */
static void together(struct job_rank *rank)
{
	enum { USERS = 3 };
	struct user users[USERS];

	for (unsigned i = 0; i < USERS; i++) {
		users[i].rank = rank;
		OK(esp_group_split(rank->world, rank->rank % (i + 1), 0, &users[i].group));
	}
	for (unsigned i = 0; i < USERS; i++)
		CHECK(pthread_create(&users[i].thread, NULL, use_group, &users[i]) == 0);
	for (unsigned i = 0; i < USERS; i++) {
		pthread_join(users[i].thread, NULL);
		OK(esp_group_free(users[i].group));
	}
}

/* A group that fails does not take others with it. */
static void one_fails(struct job_rank *rank)
{
	struct esp_group *doomed, *well;

	OK(esp_group_split(rank->world, 0, 0, &doomed));
	OK(esp_group_split(rank->world, 0, 0, &well));
	if (rank->rank == 0)
		OK(esp_abort(doomed, NULL));
	EXPECT(esp_barrier(doomed), ESP_EABORTED);
	check_group(rank, well, 30000);
	check_group(rank, rank->world, 30000);
	OK(esp_group_free(doomed));
	OK(esp_group_free(well));
}

/* ---- keys ---- */

static void keyed(struct job_rank *rank)
{
	enum { CALLS = 20 };
	struct esp_work *works[CALLS];
	int32_t *data[CALLS];
	uint32_t order[CALLS];
	uint64_t count = 5000;
	struct rng rng;

	rng_init(&rng, rank->rank);
	for (uint32_t i = 0; i < CALLS; i++)
		order[i] = i;
	for (uint32_t i = CALLS - 1; i > 0; i--) {
		uint32_t k = (uint32_t)rng_below(&rng, i + 1), swap = order[i];

		order[i] = order[k];
		order[k] = swap;
	}
	for (uint32_t i = 0; i < CALLS; i++) {
		struct esp_call call = ESP_CALL_INIT;
		uint32_t key = order[i];

		data[key] = malloc(count * sizeof(int32_t));
		for (uint64_t e = 0; e < count; e++)
			data[key][e] = (int32_t)(key + rank->rank);
		call.type = ESP_I32;
		call.count = count;
		call.in = call.out = data[key];
		call.flags = ESP_KEYED;
		call.key = key;
		OK(esp_start(rank->world, &call, &works[key]));
	}
	for (uint32_t i = 0; i < CALLS; i++) {
		int32_t expected = (int32_t)(i * rank->size + rank->size * (rank->size - 1) / 2);

		OK(esp_wait(works[i], -1));
		for (uint64_t e = 0; e < count; e++)
			CHECK(data[i][e] == expected);
		esp_work_free(works[i]);
		free(data[i]);
	}
}

static void keyed_mismatch(struct job_rank *rank)
{
	struct esp_call call = ESP_CALL_INIT;
	float data[16] = {0};
	struct esp_error error = ESP_ERROR_INIT;

	OK(esp_barrier(rank->world));
	job_meet(rank); /* all have joined when the first one leaves */
	call.count = rank->rank == 1 ? 8 : 16;
	call.in = call.out = data;
	call.flags = ESP_KEYED;
	call.key = 99;
	EXPECT(esp_run(rank->world, &call), ESP_EMISMATCH);
	OK(esp_last_error(&error));
	CHECK_MSG(strstr(error.text, "key 99") != NULL, "%s", error.text);
	CHECK_MSG((error.rank == 1) == (rank->rank != 1), "rank %u is told that it was %d: %s", rank->rank, error.rank, error.text);
}

/* ---- messages ---- */

static void letters(struct job_rank *rank)
{
	static const uint64_t sizes[] = {0, 1, 1000, 300000, 5000000};
	uint32_t next = (rank->rank + 1) % rank->size, before = (rank->rank + rank->size - 1) % rank->size;

	for (unsigned i = 0; i < 5; i++) {
		uint8_t *out = malloc(sizes[i] + 1), *in = malloc(sizes[i] + 1);
		struct esp_work *send, *receive;
		uint64_t bytes = 77;
		uint32_t from = 77;

		memset(out, (int)(rank->rank + i), sizes[i] + 1);
		/* Two tags, received the other way round. */
		OK(esp_send_start(rank->world, out, sizes[i], next, 5, 0, &send));
		OK(esp_send_start(rank->world, &i, sizeof(i), next, 6, 0, &receive));
		unsigned number = 0;
		OK(esp_recv(rank->world, &number, sizeof(number), before, 6, NULL, NULL));
		CHECK(number == i);
		OK(esp_wait(receive, -1));
		esp_work_free(receive);
		OK(esp_recv_start(rank->world, in, sizes[i] + 1, i % 2 ? ESP_ANY_RANK : before, 5, 0, &receive));
		OK(esp_wait(receive, -1));
		OK(esp_work_received(receive, &bytes, &from));
		CHECK(bytes == sizes[i] && from == before);
		for (uint64_t k = 0; k < bytes; k++)
			CHECK(in[k] == (uint8_t)(before + i));
		OK(esp_wait(send, -1));
		esp_work_free(send);
		esp_work_free(receive);
		free(in);
		free(out);
	}
	/* One that is too long is refused by its receiver; the sender and the group go on. */
	uint64_t number = rank->rank;
	struct esp_work *send;
	OK(esp_send_start(rank->world, &number, sizeof(number), next, 9, 0, &send));
	EXPECT(esp_recv(rank->world, &number, 4, before, 9, NULL, NULL), ESP_EMISMATCH);
	OK(esp_wait(send, -1));
	esp_work_free(send);
	EXPECT(esp_recv(rank->world, &number, 8, rank->size, 9, NULL, NULL), ESP_EINVAL);
	OK(esp_barrier(rank->world));
}

/* Everybody sends to everybody, more than may be in flight, and receives in another order. */
static void crowd(struct job_rank *rank)
{
	enum { LETTERS = 3 };
	uint32_t n = rank->size, count = n * LETTERS;
	uint64_t bytes = 700001;
	struct esp_work **works = calloc(2 * count, sizeof(struct esp_work *));
	uint8_t **data = calloc(2 * count, sizeof(uint8_t *));

	for (uint32_t i = 0; i < count; i++) {
		uint32_t to = (rank->rank + i) % n, from = (rank->rank + 2 * n - i % n + i / n) % n;

		data[i] = malloc(bytes);
		data[count + i] = malloc(bytes);
		memset(data[i], (int)(rank->rank * 16 + to), bytes);
		OK(esp_send_start(rank->world, data[i], bytes, to, 3, 0, &works[i]));
		OK(esp_recv_start(rank->world, data[count + i], bytes, from, 3, 0, &works[count + i]));
	}
	for (uint32_t i = 0; i < 2 * count; i++) {
		uint32_t from = 0;

		OK(esp_wait(works[i], -1));
		if (i >= count) {
			OK(esp_work_received(works[i], NULL, &from));
			for (uint64_t k = 0; k < bytes; k += 997)
				CHECK(data[i][k] == (uint8_t)(from * 16 + rank->rank));
		}
		esp_work_free(works[i]);
		free(data[i]);
	}
	free(works);
	free(data);
	OK(esp_barrier(rank->world));
}

int main(void)
{
	static const char *const memory[] = {"linger_seconds=0", NULL};
	static const char *const sockets[] = {"linger_seconds=0", "transport=tcp", NULL};
	static const char *const *const all[] = {memory, sockets};

	for (unsigned i = 0; i < 2; i++) {
		const char *const *settings = all[i];
		const char *const *orderly = settings + 1; /* leaves in good order */

		for (uint32_t size = 1; size <= 4; size++) {
			job_run(size, orderly, splits, NULL);
			job_run(size, orderly, together, NULL);
			job_run(size, orderly, keyed, NULL);
			job_run(size, orderly, letters, NULL);
			job_run(size, orderly, crowd, NULL);
			job_run(size, orderly, one_fails, NULL);
		}
		job_run(3, settings, keyed_mismatch, NULL);
	}
	return 0;
}
