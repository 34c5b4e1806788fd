/*
 * data_connection.c - connections of lanes and probes: dialling, which one is the newest, and handing them on. Control
 * thread only.
 */
#include "node/control/control_state.h"

/*
 * The dialling rank gives one connection up before it tries another. On a slow rail the proof of the abandoned one may
 * still be under way: it arrives after its successor was proved, and its other end is closed. A connection that can be
 * proved was accepted before it was given up, so the order of accept() tells which is the newest.
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
	if (dialled && connection->dial.attempts > 1 && connection->dial.rail != ROUTE_ANY &&
	    control->config.rails->count > 1)
		log_write(control->config.log, LOG_LEVEL_INFO, LOG_NET, "rank %u: lane %u goes to %s", peer, lane,
		          connection->dial.way);
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
		return; /* both ends asked for it */
	control->dialled[peer] |= bit;
	/*
	 * Where connections are replaced, the first one begins as its successors do: neither end sends before each has
	 * said how much it has received. Otherwise the other end could send chunks on an attempt that this node gives up:
	 * the kernel acknowledges them, and this thread never reads them.
	 */
	control_dial(control, peer, control->config.replaces ? HELLO_AGAIN : HELLO_LANE, lane, control->config.patience_ns);
}
