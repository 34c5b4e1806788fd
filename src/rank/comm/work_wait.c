#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "rank/comm/callbacks.h"
#include "rank/comm/comm.h"
#include "rank/comm/work.h"
#include "rank/observe/dump.h"

#define SHM_SMALL_LOOK (50 * NS_PER_US)

bool work_is_done(void *argument)
{
	struct work *work = argument;

	return atomic_load_explicit(&work->status, memory_order_acquire) != ESP_PENDING;
}

/* How it has ended. Before a caller hears of a failure it is written down: see dump.h. */
static enum esp_status tell_status(const struct work *work)
{
	enum esp_status status = (enum esp_status)atomic_load_explicit(&work->status, memory_order_acquire);

	if (status < 0 && status != ESP_ESTATE)
		dump_failures_and_wait(work->context);
	return status;
}

/* Its caller looks at it instead of waiting, or polls for it: the lanes' own threads are to see to it. */
static void expect_no_waiter(struct work *work)
{
	struct rank *context = work->context;

	if (!atomic_exchange_explicit(&work->is_expected, false, memory_order_relaxed) || work_is_done(work))
		return;
	wait_hint_miss(&context->progress.hint);
	pthread_mutex_lock(&context->lock);
	progress_expect_no_caller(&context->progress);
	if (work->shm_small_rounds > 0 && !work_is_done(work)) {
		work->group->small.expected_ns = 0;
		comm_callbacks_look_after_queues(context);
	}
	pthread_mutex_unlock(&context->lock);
}

enum esp_status work_test(struct work *work)
{
	if (!work_is_done(work) && work->shm_small_rounds > 0)
		comm_small_turn(work);
	if (!work_is_done(work))
		expect_no_waiter(work);
	return tell_status(work);
}

enum esp_status work_wait(struct work *work, uint64_t until_ns)
{
	bool was_started = work->help != BY_CALLER_NOW && work_is_small(work);

	if (work_is_done(work))
		return tell_status(work);
	if (was_started) {
		atomic_store_explicit(&work->is_expected, false, memory_order_relaxed);
		wait_hint_wait(&work->context->progress.hint, work->time.started_ns, clock_now_ns());
	}
	if (work->shm_small_rounds > 0)
		comm_small_wait(work, until_ns);
	else
		progress_wait(&work->context->progress, work_is_done, work, until_ns);
	if (was_started)
		wait_hint_leave(&work->context->progress.hint, clock_now_ns());
	return tell_status(work);
}

struct any {
	struct work *const *works;
	uint32_t count;
};

static uint32_t find_done(const struct any *any)
{
	uint32_t i = 0;

	while (i < any->count && !(any->works[i] && work_is_done(any->works[i])))
		i++;
	return i;
}

static bool any_is_done(void *any)
{
	return find_done(any) < ((struct any *)any)->count;
}

/* Lets those on small paths go on; true: there are such. */
static bool turn_small(const struct any *any)
{
	bool has_small = false;

	for (uint32_t i = 0; i < any->count; i++) {
		if (any->works[i] && any->works[i]->shm_small_rounds > 0 && !work_is_done(any->works[i])) {
			has_small = true;
			comm_small_turn(any->works[i]);
			expect_no_waiter(any->works[i]);
		}
	}
	return has_small;
}

uint32_t work_wait_any(struct work *const *works, uint32_t count, uint64_t until_ns)
{
	struct any any = {works, count};
	struct work *first = NULL;
	bool is_time = false;

	for (uint32_t i = 0; i < count && !first; i++)
		first = works[i];
	while (first && find_done(&any) == count && !is_time) {
		/* The small path is checked again and again; lanes wake us. */
		uint64_t look_ns = turn_small(&any) ? clock_now_ns() + SHM_SMALL_LOOK : UINT64_MAX;

		(void)progress_wait(&first->context->progress, any_is_done, &any, look_ns < until_ns ? look_ns : until_ns);
		is_time = until_ns != UINT64_MAX && clock_now_ns() >= until_ns;
	}
	return find_done(&any);
}

/* Started once, and over. */
static bool has_ended(const struct work *work)
{
	int status = atomic_load(&work->status);

	return status != ESP_PENDING && status != ESP_ESTATE;
}

bool work_forgo_callback(struct work *work)
{
	struct rank *context = work->context;

	pthread_mutex_lock(&context->lock);
	bool is_forgone = work->options.done && !work_is_done(work);
	if (is_forgone)
		work->end.forgoes_callback = true;
	pthread_mutex_unlock(&context->lock);
	return is_forgone;
}

enum esp_status work_descriptor(struct work *work, int *out_fd)
{
	struct rank *context = work->context;
	uint64_t one = 1;
	enum esp_status status = ESP_OK;

	expect_no_waiter(work);
	pthread_mutex_lock(&context->lock);
	if (work->event_fd < 0) {
		work->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (work->event_fd < 0)
			status = ESP_ELIMIT;
		else if (has_ended(work) && write(work->event_fd, &one, sizeof(one)) < 0)
			status = ESP_EIO;
	}
	*out_fd = work->event_fd;
	pthread_mutex_unlock(&context->lock);
	return status;
}
