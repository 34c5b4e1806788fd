/*
 * threads_test.c - one group, several threads: nobody has to wait for a call that is not its own.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "job.h"

#define TIMES 100

struct thread {
	struct job_rank *rank;
	uint32_t number;
	sem_t *enters;
	pthread_t thread;
};

static void start_thread(struct thread *thread, void *(*function)(void *))
{
	CHECK(pthread_create(&thread->thread, NULL, function, thread) == 0);
}

static void *meet(void *argument)
{
	struct thread *thread = argument;

	sem_post(thread->enters);
	OK(esp_barrier(thread->rank->world));
	return NULL;
}

/* Lets another thread of this rank wait in a small call, as far as that can be known. */
static void let_wait(struct thread *thread, struct job_rank *rank, sem_t *enters)
{
	*thread = (struct thread){.rank = rank, .enters = enters};
	start_thread(thread, meet);
	sem_wait(enters);
	for (int i = 0; i < 20; i++)
		sched_yield();
}

/* The others come to the small call only when rank 0 has made a call with a key beside it. */
static void keyed_beside_small(struct job_rank *rank)
{
	struct esp_call call = ESP_CALL_INIT;
	struct thread thread;
	sem_t enters;

	sem_init(&enters, 0, 0);
	call.type = ESP_I32;
	call.flags = ESP_KEYED;
	for (uint32_t i = 0; i < TIMES; i++) {
		int32_t one = 1, sum = 0;

		call.key = i;
		call.count = 1;
		call.in = &one;
		call.out = &sum;
		if (rank->rank == 0)
			let_wait(&thread, rank, &enters);
		OK(esp_run(rank->world, &call));
		CHECK(sum == (int32_t)rank->size);
		if (rank->rank == 0)
			pthread_join(thread.thread, NULL);
		else
			OK(esp_barrier(rank->world));
	}
	sem_destroy(&enters);
}

/* The others come only when rank 0 has started a second call of the same kind, which thus may not wait for the first. */
static void start_beside_small(struct job_rank *rank)
{
	static const uint32_t counts[] = {1, 50000};
	struct thread thread = {0};
	sem_t enters;

	sem_init(&enters, 0, 0);
	for (uint32_t i = 0; i < TIMES; i++) {
		struct esp_call call = ESP_CALL_INIT;
		struct esp_work *work = NULL, *prepared = NULL;

		call.collective = ESP_BARRIER;
		if (rank->rank == 0) {
			struct esp_call large = ESP_CALL_INIT;

			let_wait(&thread, rank, &enters);
			/* A plan can be made meanwhile, too. */
			large.count = counts[i % 2];
			large.in = large.out = thread.rank;
			OK(esp_prepare(rank->world, &large, &prepared));
			esp_work_free(prepared);
			OK(esp_start(rank->world, &call, &work));
			(void)esp_test(work);
		}
		job_meet(rank);
		if (rank->rank == 0) {
			OK(esp_wait(work, -1));
			esp_work_free(work);
			pthread_join(thread.thread, NULL);
		} else {
			OK(esp_barrier(rank->world));
			OK(esp_barrier(rank->world));
		}
	}
	sem_destroy(&enters);
}

/* Calls that are all alike, made by some threads in every way there is: whichever meet, the sum is the same. */
static void *add_ones(void *argument)
{
	struct thread *thread = argument;

	for (uint32_t i = 0; i < TIMES; i++) {
		struct esp_call call = ESP_CALL_INIT;
		struct esp_work *work;
		int32_t data[4] = {1, 1, 1, 1};

		call.type = ESP_I32;
		call.count = 4;
		call.in = call.out = data;
		switch ((thread->number + i) % 3) {
		case 0:
			OK(esp_run(thread->rank->world, &call));
			break;
		case 1:
			OK(esp_start(thread->rank->world, &call, &work));
			OK(esp_wait(work, -1));
			esp_work_free(work);
			break;
		default:
			OK(esp_start(thread->rank->world, &call, &work));
			while (esp_test(work) == ESP_PENDING)
				sched_yield();
			OK(esp_test(work));
			esp_work_free(work);
			break;
		}
		for (int k = 0; k < 4; k++)
			CHECK(data[k] == (int32_t)thread->rank->size);
	}
	return NULL;
}

static void all_together(struct job_rank *rank)
{
	struct thread threads[3];

	for (uint32_t i = 0; i < 3; i++) {
		threads[i] = (struct thread){.rank = rank, .number = i};
		start_thread(&threads[i], add_ones);
	}
	for (uint32_t i = 0; i < 3; i++)
		pthread_join(threads[i].thread, NULL);
}

/* ---- freeing ---- */

struct waiter {
	struct esp_group *group;
	_Atomic pid_t id;
};

static void *wait_in_group(void *argument)
{
	struct waiter *waiter = argument;

	waiter->id = (pid_t)syscall(SYS_gettid);
	OK(esp_barrier(waiter->group));
	return NULL;
}

/* Does it sleep? After it has begun a call that can only be in there. */
static bool sleeps(pid_t id)
{
	char path[64], text[256] = "";

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)id);
	FILE *file = fopen(path, "r");
	CHECK(file != NULL);
	size_t got = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	CHECK(got > 0);
	return strstr(text, ") S ") != NULL;
}

/* A group is not freed under a thread that waits in one of its calls. */
static void free_beside_small(struct job_rank *rank)
{
	struct esp_group *group;
	struct waiter waiter = {0};
	pthread_t thread;

	OK(esp_group_split(rank->world, 0, 0, &group));
	waiter.group = group;
	if (rank->rank == 0) {
		CHECK(pthread_create(&thread, NULL, wait_in_group, &waiter) == 0);
		while (waiter.id == 0 || !sleeps(waiter.id))
			sched_yield();
		EXPECT(esp_group_free(group), ESP_ESTATE);
	}
	OK(esp_barrier(rank->world));
	if (rank->rank == 0)
		CHECK(pthread_join(thread, NULL) == 0);
	else
		OK(esp_barrier(group));
	OK(esp_group_free(group));
}

int main(void)
{
	static const char *const memory[] = {"deadline_seconds=10", NULL};
	static const char *const sockets[] = {"deadline_seconds=10", "transport=tcp", NULL};
	static const char *const *const all[] = {memory, sockets};

	for (unsigned i = 0; i < 2; i++) {
		for (uint32_t size = 2; size <= 3; size++) {
			job_run(size, all[i], keyed_beside_small, NULL);
			job_run(size, all[i], start_beside_small, NULL);
			job_run(size, all[i], all_together, NULL);
			job_run(size, all[i], free_beside_small, NULL);
		}
	}
	return 0;
}
