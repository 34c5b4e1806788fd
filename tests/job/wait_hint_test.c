/*
 * wait_hint_test.c - callers who have waited for every call they started do not wait for the next one: it ends all the same.
 *
 * The library leaves its own threads asleep while callers wait by themselves (wait_hint.h). Deadlines, and the times after which ranks ask each other about a call, are
 * far beyond that of the test: what ends a call is that somebody sees to it.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "job.h"

#define HINT_CALLS 2500      /* more than any number of misses asks for            */
#define LARGE 100000          /* elements: such a call does not run on the board    */
#define GATE_CALLS 1000000    /* until a gate that has opened must have been noticed; some hundreds are usual */

enum way { WAY_WAIT, WAY_TEST, WAY_SIGNAL, WAY_CALLBACK, WAY_POLL, WAY_ANY, WAY_AWAY, WAYS };

static struct esp_call make_call(int32_t *value, uint64_t count)
{
	struct esp_call call = ESP_CALL_INIT;

	call.collective = ESP_ALLREDUCE;
	call.in = call.out = value;
	call.count = count;
	call.type = ESP_I32;
	call.op = ESP_SUM;
	call.deadline_ns = INT64_C(4000000000000);
	return call;
}

static void form_hint(struct job_rank *rank)
{
	int32_t value;
	struct esp_call call = make_call(&value, 1);
	struct esp_work *work;

	for (int i = 0; i < HINT_CALLS; i++) {
		value = i;
		OK(esp_start(rank->world, &call, &work));
		OK(esp_wait(work, -1));
		CHECK(value == i * (int32_t)rank->size);
		esp_work_free(work);
	}
}

static void count_call(void *context, struct esp_work *work, enum esp_status status)
{
	(void)work;
	CHECK(status == ESP_OK);
	atomic_fetch_add((atomic_int *)context, 1);
}

static void poll_for(struct esp_work *work)
{
	struct pollfd poller = {.events = POLLIN};

	OK(esp_work_descriptor(work, &poller.fd));
	CHECK(poll(&poller, 1, 120000) == 1);
}

/* Ends when the work has, without a call of the library that would drive it. */
static void end_by(struct job_rank *rank, enum way way, struct esp_work *work, const _Atomic uint64_t *signal, atomic_int *calls)
{
	uint32_t index;

	switch (way) {
	case WAY_TEST:
		while (esp_test(work) == ESP_PENDING)
			sched_yield();
		break;
	case WAY_SIGNAL:
		while (atomic_load(signal) != 7)
			sched_yield();
		break;
	case WAY_CALLBACK:
		while (atomic_load(calls) == 0)
			sched_yield();
		break;
	case WAY_POLL:
		poll_for(work);
		break;
	case WAY_ANY:
		OK(esp_wait_any(&work, 1, -1, &index));
		break;
	case WAY_AWAY: /* the others' calls end before this one comes back */
		job_meet(rank);
		break;
	default:
		break;
	}
}

static void go_without(struct job_rank *rank, enum way way, uint64_t count)
{
	int32_t values[1000];
	struct esp_call call = make_call(values, count);
	struct esp_work *work;
	_Atomic uint64_t signal = 0;
	atomic_int calls = 0;
	bool is_other = way == WAY_AWAY ? rank->rank == 0 : rank->rank % 2 == 0; /* the others wait as ever */

	for (uint64_t i = 0; i < count; i++)
		values[i] = (int32_t)i;
	if (is_other && way == WAY_SIGNAL) {
		call.signal = (uint64_t *)(void *)&signal;
		call.signal_value = 7;
	}
	if (is_other && way == WAY_CALLBACK) {
		call.done = count_call;
		call.done_context = &calls;
	}
	OK(esp_start(rank->world, &call, &work));
	if (is_other)
		end_by(rank, way, work, &signal, &calls);
	OK(esp_wait(work, -1));
	if (!is_other && way == WAY_AWAY)
		job_meet(rank);
	for (uint64_t i = 0; i < count; i++)
		CHECK(values[i] == (int32_t)(i * rank->size));
	esp_work_free(work);
}

static void hint(struct job_rank *rank)
{
	for (int way = WAY_WAIT; way < WAYS; way++) {
		form_hint(rank);
		for (uint64_t count = 1; count <= 1000; count *= 10)
			go_without(rank, (enum way)way, count);
	}
}

/* The same while a lane's own thread sleeps over a call of another group, which the last rank has not made. */
static void hint_beside(struct job_rank *rank)
{
	struct esp_group *others;
	struct esp_work *work = NULL;
	int32_t *values = calloc(LARGE, sizeof(*values));
	struct esp_call call = make_call(values, LARGE);
	bool is_late = rank->rank == rank->size - 1;

	CHECK(values != NULL);
	OK(esp_group_split(rank->world, 0, rank->rank, &others));
	if (!is_late)
		OK(esp_start(others, &call, &work));
	hint(rank);
	if (is_late)
		OK(esp_start(others, &call, &work));
	OK(esp_wait(work, -1));
	esp_work_free(work);
	OK(esp_group_free(others));
	free(values);
}

/* A gate of another group's call is seen to open although small calls are waited for all the time. */
static void gate_beside(struct job_rank *rank)
{
	struct esp_group *others;
	struct esp_work *gated, *work;
	_Atomic uint64_t gate = 0, signal = 0;
	int32_t value = 1;
	struct esp_call call = make_call(&value, 1);

	OK(esp_group_split(rank->world, 0, rank->rank, &others));
	call.gate = (uint64_t *)(void *)&gate;
	call.gate_value = 1;
	call.signal = (uint64_t *)(void *)&signal;
	call.signal_value = 7;
	OK(esp_start(others, &call, &gated));
	form_hint(rank);
	atomic_store(&gate, 1);
	int32_t has_seen = 0;
	for (int i = 0; has_seen == 0; i++) {
		CHECK(i < GATE_CALLS);
		has_seen = atomic_load(&signal) == 7;
		struct esp_call small = make_call(&has_seen, 1);
		small.op = ESP_MIN;
		OK(esp_start(rank->world, &small, &work));
		OK(esp_wait(work, -1));
		esp_work_free(work);
	}
	OK(esp_wait(gated, -1));
	CHECK(value == (int32_t)rank->size);
	esp_work_free(gated);
	OK(esp_group_free(others));
}

static void *wait_for(void *work)
{
	OK(esp_wait(work, -1));
	return NULL;
}

/* One thread waits for a call, and another, which has seen its end, frees the group. */
static void free_beside(struct job_rank *rank)
{
	for (int i = 0; i < 50; i++) {
		struct esp_group *others;
		struct esp_work *work;
		int32_t value = 1;
		struct esp_call call = make_call(&value, 1);
		pthread_t thread;

		OK(esp_group_split(rank->world, 0, rank->rank, &others));
		OK(esp_start(others, &call, &work));
		CHECK(pthread_create(&thread, NULL, wait_for, work) == 0);
		while (esp_test(work) == ESP_PENDING)
			sched_yield();
		OK(esp_group_free(others));
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(value == (int32_t)rank->size);
		esp_work_free(work);
	}
}

int main(void)
{
	static const char *const memory[] = {"liveness_ms=86400000", NULL};
	static const char *const sockets[] = {"liveness_ms=86400000", "transport=tcp", NULL};

	for (uint32_t size = 2; size <= 3; size++) {
		job_run(size, memory, hint, NULL);
		job_run(size, sockets, hint, NULL);
		job_run(size, memory, hint_beside, NULL);
		job_run(size, sockets, hint_beside, NULL);
	}
	job_run(2, memory, gate_beside, NULL);
	job_run(3, memory, free_beside, NULL);
	return 0;
}
