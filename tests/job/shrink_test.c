/*
 * shrink_test.c - groups whose ranks are all there are shrunk: the same ranks go on, whatever made the group fail.
 *
 * What happens when ranks are not there is survive_test.c's matter; here ranks are threads, and sanitizers see all of it.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "job.h"

static void check_sum(struct esp_group *group, uint64_t count)
{
	int32_t *data = calloc(count, sizeof(*data));

	CHECK(data != NULL);
	for (uint64_t i = 0; i < count; i++)
		data[i] = 1;
	OK(esp_allreduce(group, data, data, count, ESP_I32, ESP_SUM));
	for (uint64_t i = 0; i < count; i++)
		CHECK(data[i] == (int32_t)esp_size(group));
	free(data);
}

static struct esp_group *shrink_all(struct esp_group *group, uint64_t calls)
{
	struct esp_shrink shrink = ESP_SHRINK_INIT;
	struct esp_group *left = NULL;

	OK(esp_group_shrink(group, &shrink, &left));
	CHECK(left != NULL && esp_size(left) == esp_size(group) && esp_rank(left) == esp_rank(group));
	CHECK_U64(shrink.lost_count, 0);
	CHECK_U64(shrink.completed_everywhere, calls);
	CHECK_U64(shrink.completed_somewhere, calls);
	for (uint32_t i = 0; i < esp_size(left); i++)
		CHECK_U64(esp_world_rank(left, i), esp_world_rank(group, i));
	return left;
}

/* Again and again, over boards and lanes. */
static void again_and_again(struct job_rank *rank)
{
	struct esp_group *group = rank->world;

	for (int i = 0; i < 10; i++) {
		CHECK_U64(esp_group_calls(group), 0);
		check_sum(group, 10);
		check_sum(group, 100000);
		CHECK_U64(esp_group_calls(group), 2);
		job_meet(rank); /* so that nobody fails it while others are in a call */
		struct esp_group *left = shrink_all(group, 2);
		EXPECT(esp_barrier(group), ESP_EABORTED);
		if (group != rank->world)
			OK(esp_group_free(group));
		group = left;
	}
	OK(esp_group_free(group));
}

static void after_abort(struct job_rank *rank)
{
	struct esp_group *left;

	check_sum(rank->world, 1000);
	job_meet(rank);
	if (rank->rank == 1)
		OK(esp_abort(rank->world, "enough"));
	else
		EXPECT(esp_barrier(rank->world), ESP_EABORTED);
	OK(esp_group_shrink(rank->world, NULL, &left));
	check_sum(left, 1000);
	/* It was shrunk before. */
	EXPECT(esp_group_shrink(rank->world, NULL, &left), ESP_ESTATE);
	EXPECT(esp_group_shrink(rank->world, NULL, NULL), ESP_EINVAL);
	EXPECT(esp_group_shrink(NULL, NULL, &left), ESP_EINVAL);
}

/* One comes later than the others have time for; they are told who, and may try again. */
static void late(struct job_rank *rank)
{
	struct esp_shrink shrink = ESP_SHRINK_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_group *left;
	uint32_t late_one = rank->size - 1;

	check_sum(rank->world, 10);
	job_meet(rank);
	if (rank->rank != late_one) {
		shrink.deadline_ns = 300000000;
		EXPECT(esp_group_shrink(rank->world, &shrink, &left), ESP_ETIMEOUT);
		OK(esp_last_error(&error));
		CHECK_MSG(error.rank == (int32_t)late_one && strstr(error.text, "has not called esp_group_shrink()"), "%s", error.text);
	}
	job_meet(rank);
	left = shrink_all(rank->world, 1);
	check_sum(left, 10);
}

/* Of a group of some of them; the others, and other groups, do not notice. */
static void some_of_them(struct job_rank *rank)
{
	struct esp_group *half, *left;

	OK(esp_group_split(rank->world, rank->rank % 2, 0, &half));
	check_sum(half, 100);
	job_meet(rank);
	if (rank->rank % 2 == 1) {
		left = shrink_all(half, 1);
		OK(esp_group_free(half));
		check_sum(left, 100);
		half = left;
	}
	check_sum(rank->world, 100);
	check_sum(half, 100000);
	OK(esp_group_free(half));
}

/* As soon as a rank has joined, which others have not yet, although nothing keeps them from it any more: that is their first call's matter. */
static void at_once(struct job_rank *rank)
{
	struct esp_group *left = shrink_all(rank->world, 0);

	check_sum(left, 10);
}

struct leaving {
	uint32_t who;
	sem_t freed;
};

static void *shrink_in_thread(void *argument)
{
	struct esp_group **group = argument, *left = NULL;

	OK(esp_group_shrink(*group, NULL, &left));
	OK(esp_group_free(*group));
	*group = left;
	return NULL;
}

/*
 * Two groups of the same ranks, in threads of their own, each led by another rank: both leaders propose the same channel for the new group, and
 * each refuses the other's. They shall not do so for ever.
 */
static void two_at_once(struct job_rank *rank)
{
	for (unsigned i = 0; i < 100; i++) {
		struct esp_group *one, *other;
		pthread_t thread;

		OK(esp_group_split(rank->world, 0, (int32_t)rank->rank, &one));
		OK(esp_group_split(rank->world, 0, (int32_t)(rank->size - rank->rank), &other));
		job_meet(rank);
		CHECK(pthread_create(&thread, NULL, shrink_in_thread, &one) == 0);
		(void)shrink_in_thread(&other);
		CHECK(pthread_join(thread, NULL) == 0);
		check_sum(one, 1);
		check_sum(other, 1);
		OK(esp_group_free(one));
		OK(esp_group_free(other));
	}
}

/* Those who are left, of a group that this one has freed. */
static void shrink_without(struct esp_group *group, uint32_t who)
{
	struct esp_shrink shrink = ESP_SHRINK_INIT;
	struct esp_group *left = NULL;
	uint32_t lost = UINT32_MAX;

	shrink.lost = &lost;
	shrink.lost_room = 1;
	OK(esp_group_shrink(group, &shrink, &left));
	CHECK(esp_size(left) == esp_size(group) - 1 && shrink.lost_count == 1 && lost == who);
	check_sum(left, 1000);
	OK(esp_group_free(group));
	OK(esp_group_free(left));
}

/* One has no use for the group any more. It is not in the new one, and no less in the job. */
static void one_frees(struct job_rank *rank)
{
	const struct leaving *leaving = rank->argument;
	struct esp_group *group;

	OK(esp_group_split(rank->world, 0, 0, &group));
	check_sum(group, 10);
	job_meet(rank);
	if (rank->rank == leaving->who) {
		OK(esp_abort(group, "enough"));
		OK(esp_group_free(group));
	} else {
		EXPECT(esp_barrier(group), ESP_EABORTED);
		shrink_without(group, leaving->who);
	}
	check_sum(rank->world, 1000);
}

/* The same by one that has waited with the others for the last one, in vain. */
static void one_gives_up(struct job_rank *rank)
{
	struct leaving *leaving = rank->argument;
	struct esp_shrink shrink = ESP_SHRINK_INIT;
	struct esp_group *group, *left;

	OK(esp_group_split(rank->world, 0, 0, &group));
	job_meet(rank);
	if (rank->rank == leaving->who) {
		shrink.deadline_ns = 100000000;
		EXPECT(esp_group_shrink(group, &shrink, &left), ESP_ETIMEOUT);
		OK(esp_group_free(group));
		CHECK(sem_post(&leaving->freed) == 0);
	} else {
		if (rank->rank == rank->size - 1)
			CHECK(sem_wait(&leaving->freed) == 0);
		shrink_without(group, leaving->who);
	}
	check_sum(rank->world, 1000);
}

int main(void)
{
	static const char *const memory[] = {"linger_seconds=1", NULL};
	static const char *const sockets[] = {"linger_seconds=1", "transport=tcp", NULL};
	static const char *const *const all[] = {memory, sockets};

	for (unsigned i = 0; i < 2; i++) {
		for (uint32_t size = 1; size <= 5; size += 2)
			job_run(size, all[i], again_and_again, NULL);
		job_run(4, all[i], after_abort, NULL);
		job_run(3, all[i], late, NULL);
		job_run(6, all[i], some_of_them, NULL);
		for (unsigned k = 0; k < 20; k++)
			job_run(5, all[i], at_once, NULL);
		job_run(2, all[i], two_at_once, NULL);
		job_run(3, all[i], two_at_once, NULL);
		for (uint32_t who = 0; who < 3; who++) {
			struct leaving leaving = {.who = who};

			CHECK(sem_init(&leaving.freed, 0, 0) == 0);
			job_run(4, all[i], one_frees, &leaving);
			job_run(4, all[i], one_gives_up, &leaving);
			sem_destroy(&leaving.freed);
		}
	}
	return 0;
}
