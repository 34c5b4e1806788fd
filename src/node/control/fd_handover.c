/*
 * fd_handover.c - drives the fd exchange over connections (fd_exchange.h). Control thread only.
 */
#include "base/clock.h"
#include "node/control/control_state.h"

#define BUSY_PAUSE (2 * NS_PER_MS) /* while too many descriptors are in flight */

static void take_descriptors(void *argument, uint32_t local, const int *fds)
{
	struct control *control = argument;

	control->config.events->fds->neighbour(control->config.context, control->config.rank_of[local], fds,
	                                       control->fd_exchange.each);
}

/* Not the first rank: sends its own descriptors, then receives those of the others. True: call again. */
static bool fetch(struct control *control, struct connection *connection)
{
	struct error why;
	bool busy = false;
	enum esp_status status = connection->fds.has_left
	                             ? control_fd_exchange_fetch(&control->fd_exchange, connection->fd, &connection->fds.at,
	                                                         take_descriptors, control, &why)
	                             : control_fd_exchange_leave(&control->fd_exchange, connection->fd, &busy, &why);

	connection->fds.wants_room = !connection->fds.has_left && !busy;
	connection->retry_ns = busy ? clock_now_ns() + BUSY_PAUSE : 0;
	if (status < 0)
		connection_broke(connection, &why);
	if (status != ESP_OK)
		return false;
	connection->fds.wants_room = false;
	if (connection->fds.has_left && connection->fds.at == control->config.local_count)
		connection_enter(connection, CONNECTION_DONE);
	connection->fds.has_left = true;
	return true;
}

/* The first rank: receives the peer's descriptors, then sends it all others. True: call again. */
static bool hand(struct control *control, struct connection *connection)
{
	struct error why;
	uint32_t local = control->config.local_of[connection->peer];
	bool busy = false;
	enum esp_status status = ESP_PENDING;

	connection->fds.wants_room = false;
	connection->retry_ns = 0;
	if (!connection->fds.has_left)
		status = control_fd_exchange_put(&control->fd_exchange, connection->fd, local, &why);
	else if (control_fd_exchange_is_full(&control->fd_exchange))
		status =
			control_fd_exchange_hand(&control->fd_exchange, connection->fd, local, &connection->fds.at, &busy, &why);
	else
		connection_check_closed(connection); /* the peer sends nothing until then, but may close */
	if (status < 0)
		connection_broke(connection, &why);
	connection->fds.wants_room = connection->fds.has_left && control_fd_exchange_is_full(&control->fd_exchange) &&
	                             status == ESP_PENDING && !busy;
	connection->retry_ns = busy ? clock_now_ns() + BUSY_PAUSE : 0;
	if (status == ESP_OK && connection->fds.has_left)
		connection_enter(connection, CONNECTION_DONE);
	if (status == ESP_OK && !connection->fds.has_left)
		control->config.events->fds->left(control->config.context, connection->peer);
	connection->fds.has_left = connection->fds.has_left || status == ESP_OK;
	return status == ESP_OK;
}

void control_fd_handover_turn(struct control *control, struct connection *connection)
{
	struct error why;

	if (!connection->local ||
	    (!connection->dialled && control->config.local_of[connection->peer] >= control->config.local_count)) {
		error_set(&why, ESP_ELINK, "descriptors are for ranks of one host");
		connection_broke(connection, &why);
	}
	while (connection->state == CONNECTION_HANDING &&
	       (connection->dialled ? fetch(control, connection) : hand(control, connection)))
		;
}

void control_fd_handover_done(struct control *control, struct connection *connection)
{
	control->served += !connection->dialled;
	control_remove(control, connection);
	if (control->served > 0 && control->served == control->config.local_count - 1)
		control_fd_exchange_clear(&control->fd_exchange, take_descriptors, control);
}

/* One connection at a time, as each turn may remove its connection. */
void control_fd_handover_serve(struct control *control)
{
	struct connection *following;

	if (control->is_serving || !control_fd_exchange_is_full(&control->fd_exchange) || control->config.local_self > 0)
		return;
	control->is_serving = true;
	for (struct connection *connection = control_first(control); connection; connection = following) {
		following = connection_next(connection);
		if (connection->state == CONNECTION_HANDING)
			control_turn_connection(control, connection);
	}
}
