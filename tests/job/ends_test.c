/*
 * ends_test.c - the ways in which work ends: tests, waits, callbacks, descriptors, gates, signals,
 * deadlines, abort, a rank that leaves.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "job.h"

static void prepare(struct esp_call *call, int32_t *data, uint64_t count)
{
	*call = (struct esp_call)ESP_CALL_INIT;
	call->collective = ESP_ALLREDUCE;
	call->type = ESP_I32;
	call->count = count;
	call->in = call->out = data;
	for (uint64_t i = 0; i < count; i++)
		data[i] = 1;
}

static void check(const int32_t *data, uint64_t count, int32_t expected)
{
	for (uint64_t i = 0; i < count; i++)
		CHECK(data[i] == expected);
}

/* ---- good ends ---- */

struct called {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int times;
	enum esp_status status;
	char thread[16];
};

static void on_done(void *argument, struct esp_work *work, enum esp_status status)
{
	struct called *called = argument;

	CHECK(esp_test(work) == status);
	pthread_mutex_lock(&called->lock);
	called->times++;
	called->status = status;
	pthread_getname_np(pthread_self(), called->thread, sizeof(called->thread));
	pthread_cond_signal(&called->cond);
	pthread_mutex_unlock(&called->lock);
}

static void by_callback(struct job_rank *rank, int32_t *data, uint64_t count)
{
	struct called called = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
	struct esp_call call;
	struct esp_work *work;

	prepare(&call, data, count);
	call.done = on_done;
	call.done_context = &called;
	OK(esp_start(rank->world, &call, &work));
	pthread_mutex_lock(&called.lock);
	while (called.times == 0)
		pthread_cond_wait(&called.cond, &called.lock);
	pthread_mutex_unlock(&called.lock);
	CHECK(called.times == 1 && called.status == ESP_OK);
	CHECK_STR(called.thread, "esp-lane-0");
	check(data, count, (int32_t)rank->size);
	esp_work_free(work);
}

/* Of work that may have been started again since. */
static void count_done(void *argument, struct esp_work *work, enum esp_status status)
{
	struct called *called = argument;

	(void)work;
	CHECK(status == ESP_OK);
	pthread_mutex_lock(&called->lock);
	called->times++;
	pthread_cond_signal(&called->cond);
	pthread_mutex_unlock(&called->lock);
}

/* Who waits can do without the callback, of this start; and of the next one, or not. */
static void without_callback(struct job_rank *rank, int32_t *data, uint64_t count)
{
	struct called called = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
	struct esp_call call;
	struct esp_work *work;
	int32_t expected = 1;
	int wanted = 0;

	prepare(&call, data, count);
	OK(esp_prepare(rank->world, &call, &work));
	EXPECT(esp_work_no_callback(work), ESP_ESTATE); /* there is none */
	esp_work_free(work);
	call.done = count_done;
	call.done_context = &called;
	OK(esp_prepare(rank->world, &call, &work));
	EXPECT(esp_work_no_callback(work), ESP_ESTATE); /* it was not started */
	for (int i = 0; i < 20; i++) {
		OK(esp_restart(work));
		wanted += i % 3 == 0 || esp_work_no_callback(work) != ESP_OK;
		OK(esp_wait(work, -1));
		EXPECT(esp_work_no_callback(work), ESP_ESTATE); /* it has ended */
		expected *= i < 5 ? (int32_t)rank->size : 1;
		if (i < 5)
			check(data, count, expected);
		for (uint64_t k = 0; i >= 4 && k < count; k++)
			data[k] = 0;
	}
	esp_work_free(work);
	pthread_mutex_lock(&called.lock);
	while (called.times < wanted)
		pthread_cond_wait(&called.cond, &called.lock);
	pthread_mutex_unlock(&called.lock);
	by_callback(rank, data, count); /* callbacks come in order: there are no more than those */
	CHECK(called.times == wanted);
}

static void by_descriptor(struct job_rank *rank, int32_t *data, uint64_t count)
{
	struct esp_call call;
	struct esp_work *work;
	struct pollfd poll_fd = {.events = POLLIN};

	prepare(&call, data, count);
	OK(esp_start(rank->world, &call, &work));
	OK(esp_work_descriptor(work, &poll_fd.fd));
	CHECK(poll(&poll_fd, 1, -1) == 1);
	OK(esp_test(work));
	check(data, count, (int32_t)rank->size);
	esp_work_free(work);
}

static void by_test(struct job_rank *rank, int32_t *data, uint64_t count)
{
	struct esp_call call;
	struct esp_work *work;
	enum esp_status status;

	prepare(&call, data, count);
	OK(esp_start(rank->world, &call, &work));
	while ((status = esp_test(work)) == ESP_PENDING)
		;
	OK(status);
	check(data, count, (int32_t)rank->size);
	esp_work_free(work);
}

static void by_wait_any(struct job_rank *rank, int32_t *data, uint64_t count)
{
	struct esp_call call;
	struct esp_work *works[4] = {NULL};
	uint32_t index = 0;

	for (unsigned i = 1; i < 4; i++) {
		prepare(&call, data + i * count, count);
		OK(esp_start(rank->world, &call, &works[i]));
	}
	for (unsigned left = 3; left > 0; left--) {
		OK(esp_wait_any(works, 4, -1, &index));
		CHECK(index > 0 && works[index]);
		check(data + index * count, count, (int32_t)rank->size);
		esp_work_free(works[index]);
		works[index] = NULL;
	}
	EXPECT(esp_wait_any(works, 4, -1, &index), ESP_EINVAL);
}

static void persistent(struct job_rank *rank, int32_t *data, uint64_t count)
{
	struct esp_call call;
	struct esp_work *work;
	int32_t expected = 1;

	prepare(&call, data, count);
	OK(esp_prepare(rank->world, &call, &work));
	EXPECT(esp_test(work), ESP_ESTATE);
	for (int i = 0; i < 5; i++) {
		OK(esp_restart(work));
		OK(esp_wait(work, -1));
		expected *= (int32_t)rank->size;
		check(data, count, expected);
	}
	esp_work_free(work);
}

static void gated(struct job_rank *rank, int32_t *data, uint64_t count)
{
	struct esp_call call;
	struct esp_work *work, *behind;
	_Atomic uint64_t gate = 0, signal = 0;

	prepare(&call, data, count);
	call.gate = (const uint64_t *)(const void *)&gate;
	call.gate_value = 3;
	call.signal = (uint64_t *)(void *)&signal;
	call.signal_value = 7;
	OK(esp_start(rank->world, &call, &work));
	prepare(&call, data + count, count); /* its turn comes after the gated one's */
	OK(esp_start(rank->world, &call, &behind));
	EXPECT(esp_test(work), ESP_PENDING);
	EXPECT(esp_wait(work, 2000000), ESP_PENDING);
	CHECK(atomic_load(&signal) == 0);
	atomic_store(&gate, 2);
	EXPECT(esp_test(work), ESP_PENDING);
	atomic_store(&gate, 3);
	if (rank->rank % 2)
		esp_poke(rank->context);
	OK(esp_wait(work, -1));
	CHECK(atomic_load(&signal) == 7);
	OK(esp_wait(behind, -1));
	check(data, 2 * count, (int32_t)rank->size);
	esp_work_free(work);
	esp_work_free(behind);
}

/* Freed before it has ended: it ends all the same. */
static void forgotten(struct job_rank *rank, int32_t *data, uint64_t count)
{
	struct esp_call call;
	struct esp_work *work;

	prepare(&call, data, count);
	OK(esp_start(rank->world, &call, &work));
	esp_work_free(work);
	OK(esp_barrier(rank->world));
	prepare(&call, data + count, count);
	OK(esp_run(rank->world, &call));
	check(data + count, count, (int32_t)rank->size);
}

static void many_buffers(struct job_rank *rank, int32_t *data, uint64_t count)
{
	struct esp_call call;
	struct esp_buffer buffers[3] = {ESP_BUFFER_INIT, ESP_BUFFER_INIT, ESP_BUFFER_INIT};
	uint64_t sizes[3] = {count / 3, 2 * count, 3 * count - 2 * count - count / 3};
	int32_t *at = data;

	prepare(&call, data, 4 * count);
	call.count = 0;
	for (unsigned i = 0; i < 3; i++) {
		buffers[i].data = at;
		buffers[i].bytes = sizes[i] * sizeof(*at);
		at += sizes[i] + 1; /* a gap that stays as it is */
		call.count += sizes[i];
	}
	call.in_buffers = call.out_buffers = buffers;
	call.in_buffer_count = call.out_buffer_count = 3;
	OK(esp_run(rank->world, &call));
	at = data;
	for (unsigned i = 0; i < 3; i++) {
		check(at, sizes[i], (int32_t)rank->size);
		CHECK(at[sizes[i]] == 1);
		at += sizes[i] + 1;
	}
	buffers[1].memory = ESP_CUDA;
	EXPECT(esp_run(rank->world, &call), ESP_EUNSUPPORTED);
}

static void good_ends(struct job_rank *rank)
{
	static const uint64_t counts[] = {10, 100000};

	for (unsigned i = 0; i < 2; i++) {
		int32_t *data = malloc(4 * counts[i] * sizeof(*data));

		by_callback(rank, data, counts[i]);
		without_callback(rank, data, counts[i]);
		by_descriptor(rank, data, counts[i]);
		by_test(rank, data, counts[i]);
		by_wait_any(rank, data, counts[i]);
		persistent(rank, data, counts[i]);
		gated(rank, data, counts[i]);
		forgotten(rank, data, counts[i]);
		many_buffers(rank, data, counts[i]);
		free(data);
	}
}

/* ---- bad ends ---- */

static struct esp_error last_error(void)
{
	struct esp_error error = ESP_ERROR_INIT;

	OK(esp_last_error(&error));
	return error;
}

/*
 * The last rank does not come: the others' call ends when it is time, and names it. One of the others may be so slow that the group
 * has failed before it calls: then it has waited for nobody.
 */
static void late(struct job_rank *rank)
{
	static atomic_uint waited; /* ranks of the job that did */
	uint64_t count = *(uint64_t *)rank->argument;
	int32_t *data = malloc(count * sizeof(*data));
	struct esp_call call;

	OK(esp_barrier(rank->world));
	job_meet(rank);
	if (rank->rank + 1 < rank->size) {
		prepare(&call, data, count);
		call.deadline_ns = 30000000;
		EXPECT(esp_run(rank->world, &call), ESP_ETIMEOUT);
		struct esp_error error = last_error();
		CHECK_STR(error.operation, "allreduce");
		CHECK(error.sequence > 0);
		bool came_after = strstr(error.text, "has failed before") != NULL;
		CHECK_MSG((error.waits_for >= 0) == !came_after, "waits for %d: %s", error.waits_for, error.text);
		waited += !came_after;
	}
	job_meet(rank);
	/* It learns of it too, without a call. */
	if (rank->rank + 1 == rank->size) {
		struct esp_error error = ESP_ERROR_INIT;

		CHECK(atomic_exchange(&waited, 0) > 0);
		while (error.status == ESP_OK)
			OK(esp_group_error(rank->world, &error));
		EXPECT(esp_barrier(rank->world), ESP_ETIMEOUT);
	}
	free(data);
}

static void aborted(struct job_rank *rank)
{
	uint64_t count = *(uint64_t *)rank->argument;
	int32_t *data = malloc(count * sizeof(*data));
	struct esp_call call;

	OK(esp_barrier(rank->world));
	job_meet(rank);
	prepare(&call, data, count);
	if (rank->rank == 0)
		OK(esp_abort(rank->world, "the cat is on the keyboard"));
	EXPECT(esp_run(rank->world, &call), ESP_EABORTED);
	struct esp_error error = last_error();
	CHECK(error.rank == 0);
	CHECK_MSG(strstr(error.text, "the cat is on the keyboard") != NULL, "%s", error.text);
	free(data);
}

/* One rank leaves; the others' calls end with its name. */
static void left(struct job_rank *rank)
{
	uint64_t count = *(uint64_t *)rank->argument;
	int32_t *data = malloc(count * sizeof(*data));
	struct esp_call call;

	OK(esp_barrier(rank->world));
	job_meet(rank);
	if (rank->rank > 0) {
		prepare(&call, data, count);
		EXPECT(esp_run(rank->world, &call), ESP_EPEER);
		CHECK_MSG(last_error().rank == 0, "%s", last_error().text);
	}
	free(data);
}

/* One never makes a large call. Whoever each of the others waits for in its plan, all are told who it is. */
static void absent_from(struct job_rank *rank, bool keyed)
{
	enum { COUNT = 400000, ABSENT = 2 };
	struct esp_call call = ESP_CALL_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	float *data = calloc(COUNT, sizeof(*data));

	CHECK(data != NULL);
	call.count = COUNT;
	call.in = call.out = data;
	call.plan = rank->argument;
	call.deadline_ns = 1000000000;
	call.flags = keyed ? ESP_KEYED : 0;
	call.key = 7;
	OK(esp_barrier(rank->world));
	if (rank->rank != ABSENT) {
		EXPECT(esp_run(rank->world, &call), ESP_ETIMEOUT);
		OK(esp_last_error(&error));
		CHECK_MSG(error.rank == ABSENT && strstr(error.text, "rank 2 on "), "it was rank %d: %s", error.rank, error.text);
	}
	job_meet(rank);
	free(data);
}

static void absent(struct job_rank *rank)
{
	absent_from(rank, false);
}

/* A call with a key waits until all have made it: then too. */
static void absent_keyed(struct job_rank *rank)
{
	absent_from(rank, true);
}

/* One makes none of many calls that the others have started, more than are told of one by one: its name is told all the same. */
static void absent_from_many(struct job_rank *rank)
{
	enum { CALLS = 100, ABSENT = 2 };
	int32_t data[CALLS];
	struct esp_work *works[CALLS];

	OK(esp_barrier(rank->world));
	for (int i = 0; i < CALLS && rank->rank != ABSENT; i++) {
		struct esp_call call;

		prepare(&call, &data[i], 1);
		call.deadline_ns = 1000000000;
		OK(esp_start(rank->world, &call, &works[i]));
	}
	for (int i = CALLS - 1; i >= 0 && rank->rank != ABSENT; i--) {
		struct esp_error error = ESP_ERROR_INIT;

		EXPECT(esp_wait(works[i], -1), ESP_ETIMEOUT);
		OK(esp_work_error(works[i], &error));
		CHECK_MSG(error.rank == ABSENT && strstr(error.text, "rank 2 on "), "it was rank %d: %s", error.rank, error.text);
		esp_work_free(works[i]);
	}
	job_meet(rank);
}
/* One was late for a call, of which the others were told; another one does not make the next. Who is named is that one. */
static void absent_after_another(struct job_rank *rank)
{
	enum { COUNT = 100000, LATE = 1, ABSENT = 3 };
	const struct timespec while_others_ask = {.tv_nsec = 300000000};
	uint64_t late_count = *(uint64_t *)rank->argument;
	int32_t *data = calloc(COUNT, sizeof(*data));
	struct esp_call call;

	CHECK(data != NULL);
	OK(esp_barrier(rank->world));
	if (rank->rank == LATE)
		nanosleep(&while_others_ask, NULL);
	prepare(&call, data, late_count);
	OK(esp_run(rank->world, &call));
	if (rank->rank != ABSENT) {
		prepare(&call, data, COUNT);
		call.deadline_ns = 1000000000;
		EXPECT(esp_run(rank->world, &call), ESP_ETIMEOUT);
		struct esp_error error = last_error();
		CHECK_MSG(error.rank == ABSENT && strstr(error.text, "rank 3 on "), "it was rank %d: %s", error.rank, error.text);
	}
	job_meet(rank);
	free(data);
}

int main(void)
{
	static const char *const memory[] = {"linger_seconds=0", NULL};
	static const char *const sockets[] = {"linger_seconds=0", "transport=tcp", NULL};
	static const char *const lanes[] = {"lanes=3", "chunk_bytes=4K", NULL};
	static const char *const *const all[] = {memory, sockets};
	static const char *const impatient_memory[] = {"linger_seconds=0", "liveness_ms=5000", NULL};
	static const char *const impatient_sockets[] = {"linger_seconds=0", "liveness_ms=5000", "transport=tcp", NULL};
	static const char *const *const impatient[] = {impatient_memory, impatient_sockets};
	uint64_t counts[] = {10, 100000};

	for (uint32_t size = 1; size <= 4; size++) {
		job_run(size, NULL, good_ends, NULL);
		job_run(size, sockets + 1, good_ends, NULL);
		job_run(size, lanes, good_ends, NULL);
	}
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 2; k++) {
			job_run(3, all[i], late, &counts[k]);
			job_run(3, all[i], aborted, &counts[k]);
			job_run(3, all[i], left, &counts[k]);
		}
	}
	for (unsigned i = 0; i < 2; i++) {
		job_run(6, all[i], absent, "ring");
		job_run(6, all[i], absent, "tree");
		job_run(6, all[i], absent, NULL);
		job_run(3, all[i], absent_keyed, NULL);
		job_run(5, all[i], absent_from_many, NULL);
		for (unsigned k = 0; k < 2; k++)
			job_run(5, impatient[i], absent_after_another, &counts[k]);
	}
	return 0;
}
