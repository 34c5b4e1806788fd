#include "rank/comm/background.h"

#include "base/clock.h"
#include "rank/comm/callbacks.h"
#include "rank/comm/comm.h"
#include "rank/comm/work.h"

/*
 * Time until the queues are checked again for gates and small calls that no caller waits for: an eighth of the time
 * since an entry was queued. So a call that the others make too is soon over, and one that waits for a late rank costs
 * little.
 */
#define LOOK_SOON (20 * NS_PER_US)
#define LOOK_LATER (500 * NS_PER_US)

static struct work *take_callback(struct rank *context, enum esp_status *out_status)
{
	pthread_mutex_lock(&context->lock);
	struct work *work = context->comms.to_call_back_first;
	if (work && --work->end.callbacks_due == 0)
		context->comms.to_call_back_first = work->link.callback_next;
	if (work)
		*out_status = work->end.status;
	atomic_store(&context->comms.has_callbacks, context->comms.to_call_back_first != NULL);
	pthread_mutex_unlock(&context->lock);
	return work;
}

static void run_all(struct rank *context)
{
	struct work *work;
	enum esp_status status;

	while ((work = take_callback(context, &status))) {
		work->options.done(work->options.done_context, work, status);
		work_put(work);
	}
}

/* No caller waits for the calls in its queues. */
static void note_miss(struct rank *context, struct comm *group)
{
	if (group->small.expected_ns == 0)
		return;
	group->small.expected_ns = 0;
	context->comms.queued_ns = clock_now_ns();
	wait_hint_miss(&context->progress.hint);
}

static uint64_t when_to_look(const struct rank *context)
{
	uint64_t now = clock_now_ns(), wait = (now - context->comms.queued_ns) / 8;

	return now + (wait < LOOK_SOON ? LOOK_SOON : wait > LOOK_LATER ? LOOK_LATER : wait);
}

/* With context->lock held, which is given back meanwhile: looks at the queues. Returns the time to look again. */
static uint64_t look_at_queues(struct rank *context)
{
	bool is_left_any = false;

	atomic_store(&context->comms.has_news, false);
	if (!context->comms.has_queues)
		return UINT64_MAX;
	context->comms.has_queues = false;
	for (struct comm *group = context->comms.list; group; group = group->next) {
		if (atomic_load(&group->queued) == 0)
			continue;
		if (wait_hint_may_come(group->small.expected_ns, clock_now_ns())) {
			context->comms.has_queues = true;
			continue;
		}
		comm_visit(group);
		pthread_mutex_unlock(&context->lock);
		bool is_left = comm_turn(group);
		pthread_mutex_lock(&context->lock);
		comm_depart(group);
		if (is_left) {
			context->comms.has_queues = is_left_any = true;
			note_miss(context, group);
		}
	}
	if (!context->comms.has_queues)
		return UINT64_MAX;
	/* Others may have put something there while the lock was not held. */
	return is_left_any || atomic_load(&context->comms.has_news) ? when_to_look(context)
	                                                            : clock_now_ns() + WAIT_HINT_LOOK_EVERY;
}

uint64_t comm_background_run(void *argument)
{
	struct rank *context = argument;
	uint64_t next = UINT64_MAX;

	if (atomic_load(&context->comms.has_callbacks))
		run_all(context);
	if (atomic_load(&context->comms.has_news) || atomic_load(&context->comms.has_queues)) {
		pthread_mutex_lock(&context->lock);
		next = look_at_queues(context);
		pthread_mutex_unlock(&context->lock);
	}
	return next;
}
