#include "rank/progress/poll_order.h"

#include "rank/rank.h"

/* Is it a rank of this machine that sits on another core? */
static bool sits_elsewhere(const struct driver *driver, uint32_t peer)
{
	const struct context *context = driver->context;
	const struct roster *roster = &context->roster;
	const struct card *own = &roster->cards[context->rank], *other = &roster->cards[peer];

	if (!driver->seat.is_wanted || roster->host_of[peer] != roster->host_of[context->rank])
		return false;
	return own->core_set != other->core_set ||
	       seat_turn(roster->core_place[peer], own->cores) != seat_turn(roster->core_place[context->rank], own->cores);
}

enum course course_choose(const struct driver *driver)
{
	if (!driver->context->crowded || !driver->tcp || driver->shm || tcp_has_work(driver->tcp))
		return COURSE_MOVE;
	struct lane_outlook outlook = lane_outlook(driver->lane);
	if (outlook.peer == PLAN_NONE)
		return COURSE_MOVE;
	bool is_elsewhere = sits_elsewhere(driver, outlook.peer);
	if (outlook.is_exchange)
		return is_elsewhere ? COURSE_LOOK : COURSE_MOVE;
	return outlook.was_just_sent && !is_elsewhere ? COURSE_REST : COURSE_MOVE;
}

void course_begin(struct driver *driver, uint64_t launched_ns)
{
	if (launched_ns - driver->launched_ns > COURSE_NEW_NS)
		lane_rested(driver->lane);
	driver->launched_ns = launched_ns;
}
