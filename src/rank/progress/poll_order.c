#include "rank/progress/poll_order.h"

#include "rank/rank.h"

/* Is it a rank of this machine that sits on another core? */
static bool sits_elsewhere(const struct progress *progress, uint32_t peer)
{
	const struct rank *context = progress->context;
	const struct roster *roster = &context->roster;
	const struct node_info *own = &roster->nodes[context->rank], *other = &roster->nodes[peer];

	if (!progress->seat.is_wanted || roster->host_of[peer] != roster->host_of[context->rank])
		return false;
	return own->core_set != other->core_set ||
	       core_affinity_turn(roster->core_place[peer], own->cores) != core_affinity_turn(roster->core_place[context->rank], own->cores);
}

enum course poll_order_choose(const struct progress *progress)
{
	if (!progress->context->crowded || !progress->tcp || progress->shm || tcp_has_work(progress->tcp))
		return POLL_ORDER_MOVE;
	struct lane_outlook outlook = lane_outlook(progress->lane);
	if (outlook.peer == PLAN_NONE)
		return POLL_ORDER_MOVE;
	bool is_elsewhere = sits_elsewhere(progress, outlook.peer);
	if (outlook.is_exchange)
		return is_elsewhere ? POLL_ORDER_LOOK : POLL_ORDER_MOVE;
	return outlook.was_just_sent && !is_elsewhere ? POLL_ORDER_REST : POLL_ORDER_MOVE;
}

void poll_order_begin(struct progress *progress, uint64_t launched_ns)
{
	if (launched_ns - progress->launched_ns > POLL_ORDER_NEW_NS)
		lane_rested(progress->lane);
	progress->launched_ns = launched_ns;
}
