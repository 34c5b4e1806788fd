/*
 * data_connection.c - connections for data, and to measure rails with: who makes them, which is the newest, and to whom they go.
 */
#include <sys/epoll.h>

#include "node/control/control_state.h"

/*
 * Who dials a lane gives one connection up before it tries another, but on a slow rail its proof may still be under way then: it comes
 * after the one that took its place is proved, and nobody is at its other end. What can be proved was accepted before it was given up.
 */
bool lanes_is_outdated(struct steward *steward, const struct link *link)
{
	if (link->dialled || !steward->config.replaces || link->purpose == HELLO_PROBE)
		return false;
	uint64_t *newest = &steward->newest[(size_t)link->peer * steward->config.lanes + link->lane];
	bool is_newer = link->number > *newest;

	*newest = is_newer ? link->number : *newest;
	return !is_newer;
}

void lanes_done(struct steward *steward, struct link *link)
{
	uint32_t peer = link->peer, lane = link->lane;
	uint8_t purpose = link->purpose;
	bool dialled = link->dialled;
	int fd = link->fd;

	if (!dialled && steward->config.rails->count > 1)
		link_pin(link, &steward->config.listener->interfaces);
	if (dialled && link->attempts > 1 && link->rail != ROUTE_ANY && steward->config.rails->count > 1)
		log_write(steward->config.join->log, LOG_LEVEL_INFO, LOG_NET, "rank %u: lane %u goes to %s", peer, lane, link->way);
	uint32_t rail = link_rail(link, &steward->ways);
	(void)epoll_ctl(steward->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	link->fd = -1;
	steward_remove(steward, link);
	if (purpose == HELLO_PROBE)
		steward->config.events->probe_connected(steward->config.context, peer, lane, fd, dialled);
	else
		steward->config.events->lane_connected(steward->config.context, peer, lane, fd, rail, purpose == HELLO_AGAIN);
}

void lanes_dial(struct steward *steward, uint32_t peer, uint32_t lane)
{
	uint64_t bit = UINT64_C(1) << lane;

	if (steward->config.replaces && steward->dialled[peer] & bit)
		return; /* the other end asks for it, and so did we */
	steward->dialled[peer] |= bit;
	/*
	 * Where connections are replaced, the first one begins as those do that take its place: nothing is sent before each end has said what
	 * it has. Otherwise the other end, which takes it for made first, could send what this kernel acknowledges and this thread never reads,
	 * as it gives the attempt up.
	 */
	steward_dial(steward, peer, steward->config.replaces ? HELLO_AGAIN : HELLO_LANE, lane, steward->config.patience_ns);
}
