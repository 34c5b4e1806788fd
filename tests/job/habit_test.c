/*
 * habit_test.c - callers who have waited for every call they started do not wait for the next one: it ends all the same.
 *
 * The library leaves its own threads asleep while callers wait by themselves (habit.h); the deadline is far below that of the test.
 */
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/check.h"
#include "job.h"

#define HABIT_CALLS 2500 /* more than any number of misses asks for */

enum way { WAY_WAIT, WAY_TEST, WAY_SIGNAL, WAY_CALLBACK, WAY_POLL, WAY_ANY, WAY_AWAY, WAYS };

static struct esp_call make_call(int32_t *value, uint64_t count)
{
	struct esp_call call = ESP_CALL_INIT;

	call.collective = ESP_ALLREDUCE;
	call.in = call.out = value;
	call.count = count;
	call.type = ESP_I32;
	call.op = ESP_SUM;
	call.deadline_ns = INT64_C(60000000000);
	return call;
}

static void form_habit(struct job_rank *rank)
{
	int32_t value;
	struct esp_call call = make_call(&value, 1);
	struct esp_work *work;

	for (int i = 0; i < HABIT_CALLS; i++) {
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

static void habit(struct job_rank *rank)
{
	for (int way = WAY_WAIT; way < WAYS; way++) {
		form_habit(rank);
		for (uint64_t count = 1; count <= 1000; count *= 10)
			go_without(rank, (enum way)way, count);
	}
}

int main(void)
{
	static const char *const sockets[] = {"transport=tcp", NULL};

	for (uint32_t size = 2; size <= 3; size++) {
		job_run(size, NULL, habit, NULL);
		job_run(size, sockets, habit, NULL);
	}
	return 0;
}
