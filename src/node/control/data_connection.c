/*
 * data_connection.c - connections for data, and to measure rails with: who makes them, which is the newest, and to whom they go.
 */
#include "node/control/control_state.h"

/*
 * Who dials a lane gives one connection up before it tries another, but on a slow rail its proof may still be under way then: it comes
 * after the one that took its place is proved, and nobody is at its other end. What can be proved was accepted before it was given up.
 */
bool data_connection_is_outdated(struct control *control, const struct connection *connection)
{
	if (connection->dialled || !control->config.replaces || connection->purpose == HELLO_PROBE)
		return false;
	uint64_t *newest = &control->newest[(size_t)connection->peer * control->config.lanes + connection->lane];
	bool is_newer = connection->number > *newest;

	*newest = is_newer ? connection->number : *newest;
	return !is_newer;
}

void data_connection_done(struct control *control, struct connection *connection)
{
	uint32_t peer = connection->peer, lane = connection->lane;
	uint8_t purpose = connection->purpose;
	bool dialled = connection->dialled;
	int fd = connection->fd;

	if (!dialled && control->config.rails->count > 1)
		connection_pin(connection, &control->config.listener->interfaces);
	if (dialled && connection->dial.attempts > 1 && connection->dial.rail != ROUTE_ANY && control->config.rails->count > 1)
		log_write(control->config.log, LOG_LEVEL_INFO, LOG_NET, "rank %u: lane %u goes to %s", peer, lane, connection->dial.way);
	uint32_t rail = connection_rail(connection, &control->ways);
	control_unwatch(control, connection);
	connection->fd = -1;
	control_remove(control, connection);
	if (purpose == HELLO_PROBE)
		control->config.events->rails->probe_connected(control->config.context, peer, lane, fd, dialled);
	else
		control->config.events->lanes->connected(control->config.context, peer, lane, fd, rail, purpose == HELLO_AGAIN);
}

void data_connection_dial(struct control *control, uint32_t peer, uint32_t lane)
{
	uint64_t bit = UINT64_C(1) << lane;

	if (control->config.replaces && control->dialled[peer] & bit)
		return; /* the other end asks for it, and so did we */
	control->dialled[peer] |= bit;
	/*
	 * Where connections are replaced, the first one begins as those do that take its place: nothing is sent before each end has said what
	 * it has. Otherwise the other end, which takes it for made first, could send what this kernel acknowledges and this thread never reads,
	 * as it gives the attempt up.
	 */
	control_dial(control, peer, control->config.replaces ? HELLO_AGAIN : HELLO_LANE, lane, control->config.patience_ns);
}
