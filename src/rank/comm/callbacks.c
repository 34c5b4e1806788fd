#include "rank/comm/callbacks.h"

#include "base/clock.h"
#include "rank/comm/comm_state.h"

bool comm_callbacks_pending(void *argument)
{
	struct rank *context = argument;

	return atomic_load_explicit(&context->comms.has_callbacks, memory_order_relaxed) ||
	       atomic_load_explicit(&context->comms.has_news, memory_order_relaxed);
}

void comm_callbacks_call_back(struct rank *context, struct work *work)
{
	/* Restarted and ended again before it was told of the first end: it is told twice. */
	if (work->end.callbacks_due++ == 0) {
		work->link.callback_next = NULL;
		if (context->comms.to_call_back_first)
			context->comms.to_call_back_last->link.callback_next = work;
		else
			context->comms.to_call_back_first = work;
		context->comms.to_call_back_last = work;
	}
	atomic_store(&context->comms.has_callbacks, true);
	progress_nudge(&context->progress.lanes[0]);
}

void comm_callbacks_look_after_queues(struct rank *context)
{
	context->comms.has_queues = true;
	context->comms.queued_ns = clock_now_ns();
	atomic_store(&context->comms.has_news, true);
	progress_nudge(&context->progress.lanes[0]);
}

void comm_callbacks_expect_waiter(struct rank *context, struct comm *group)
{
	struct progress *progress = &context->progress.lanes[0];

	group->small.expected_ns = clock_now_ns();
	if (!context->comms.has_queues) {
		context->comms.has_queues = true;
		context->comms.queued_ns = group->small.expected_ns;
	}
	if (!progress_watch(progress)) { /* the lane thread may be driving, and would not come back for this */
		atomic_store(&context->comms.has_news, true);
		progress_nudge(progress);
	}
}
