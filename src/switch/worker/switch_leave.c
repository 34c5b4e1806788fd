/*
 * switch_leave.c - the end of a flow: members that lack results of this one get them until they have said that they
 * have all. A member that has ended its last sum has results of the current generation, so the one before is forgotten
 * (G3).
 */
#include "base/clock.h"
#include "switch/worker/link_state.h"

#define LINGER_EVERY (50 * NS_PER_MS)
#define LAST_BYES 3u /* byes are not acknowledged */

void switch_leave_pump(struct switch_flow *flow, uint64_t now_ns)
{
	struct owner *owner = flow->stream.current->owner;

	if (owner_is_quiet(owner)) {
		pthread_cond_broadcast(&flow->link->changed);
		flow->linger_ns = UINT64_MAX;
	} else if (now_ns >= flow->linger_ns) {
		owner_linger(owner);
		flow->linger_ns = now_ns + LINGER_EVERY;
	}
}

/* With the lock held: some byes, as none is acknowledged. */
static void say_bye(struct switch_flow *flow)
{
	for (uint32_t i = 0; i < LAST_BYES && flow->failed == ESP_OK; i++) {
		sender_finish(flow->stream.current->sender);
		(void)switch_flow_pump(flow, clock_now_ns());
		trains_flush(flow->link->udp);
	}
}

/* With the lock held, which is given back meanwhile. */
static bool is_awaited(struct switch_flow *flow, switch_is_gone_fn *is_gone, void *context)
{
	for (uint16_t member = 0; member < flow->members; member++) {
		if (flow->failed != ESP_OK || owner_is_done(flow->stream.current->owner, member))
			continue;
		pthread_mutex_unlock(&flow->link->lock);
		bool gone = is_gone(context, member);
		pthread_mutex_lock(&flow->link->lock);
		if (!gone && flow->failed == ESP_OK && !owner_is_done(flow->stream.current->owner, member))
			return true;
	}
	return false;
}

bool switch_flow_linger(struct switch_flow *flow, uint64_t until_ns, switch_is_gone_fn *is_gone, void *context)
{
	struct switch_link *link = flow->link;
	uint64_t now = clock_now_ns();

	pthread_mutex_lock(&link->lock);
	say_bye(flow);
	flow->is_lingering = true;
	flow->linger_ns = 0;
	loop_post(&link->loop, &link->kick);
	bool awaits = is_awaited(flow, is_gone, context);
	for (; awaits && now < until_ns; now = clock_now_ns()) {
		(void)switch_link_await(link, now + LINGER_EVERY < until_ns ? now + LINGER_EVERY : until_ns);
		awaits = is_awaited(flow, is_gone, context);
	}
	say_bye(flow);
	pthread_mutex_unlock(&link->lock);
	return !awaits;
}
