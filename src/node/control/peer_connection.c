#include "node/control/peer_connection.h"

#include "base/clock.h"

/* After more connections in a row without a message, the next one is dialled a little later: both ends may dial. */
#define AT_ONCE_MOST 2u
#define IN_VAIN_MOST 8u /* and then no more: a middlebox answers and lets no message through */

/* ---- which of several carries messages ---- */

static bool is_control_to(const struct connection *connection, uint32_t peer)
{
	return connection->purpose == HELLO_CONTROL && connection->peer == peer &&
	       (connection->dialled || connection->is_announced);
}

/* A control connection to the same peer that was made later than this one, or NULL. */
static struct connection *find_newer(const struct control *control, uint32_t peer, uint32_t than)
{
	for (struct connection *connection = control_first(control); connection; connection = connection_next(connection)) {
		if (is_control_to(connection, peer) && connection->lane > than)
			return connection;
	}
	return NULL;
}

/* The other end sends on a newer connection, so it sends nothing on older ones any more: removes them. */
static void retire_older(struct control *control, const struct connection *newer)
{
	struct connection *following;

	for (struct connection *connection = control_first(control); connection; connection = following) {
		following = connection_next(connection);
		if (is_control_to(connection, newer->peer) && connection->lane < newer->lane)
			control_remove(control, connection);
	}
}

bool control_peer_connection_is_spare(const struct control *control, const struct connection *connection)
{
	if (connection->purpose != HELLO_CONTROL || connection->lane == 0)
		return false;
	for (const struct connection *other = control_first(control); other; other = connection_next(other)) {
		if (other != connection && is_control_to(other, connection->peer) && other->lane >= connection->lane)
			return true;
	}
	return false;
}

void control_peer_connection_choose_other(struct control *control, uint32_t peer)
{
	struct connection *best = NULL;

	for (struct connection *connection = control_first(control); connection; connection = connection_next(connection)) {
		bool is_open = connection->state == CONNECTION_OPEN, best_is_open = best && best->state == CONNECTION_OPEN;

		if (!is_control_to(connection, peer) || connection->state == CONNECTION_BROKEN)
			continue;
		if (!best || is_open > best_is_open || (is_open == best_is_open && connection->lane > best->lane))
			best = connection;
	}
	control->control[peer] = best;
	control_reliable_begin(&control->reliable[peer]);
	control->has_queued = control->has_posted = true; /* kept messages are queued on it before the thread sleeps */
}

void control_peer_connection_ended(struct control *control, struct connection *connection)
{
	uint32_t peer = connection->peer, count = connection->lane,
			 in_vain = control_reliable_broke(&control->reliable[peer]);
	bool may_be_there = !connection->local &&
	                    (connection->err.status == ESP_EPEER || connection->err.status == ESP_ELINK) &&
	                    in_vain <= IN_VAIN_MOST;
	bool has_newer = find_newer(control, peer, count) != NULL;
	struct node_address far = connection->far;
	struct error why = connection->err;

	control_remove(control, connection);
	if (has_newer)
		return;
	/* If both ends dialled there is another connection: its messages come first, as one may be CONTROL_LEFT. */
	for (struct connection *other = control_first(control); other; other = connection_next(other)) {
		if (other->peer == peer && other->is_announced && other->purpose == HELLO_CONTROL)
			control_peer_connection_receive(control, other);
	}
	if (may_be_there && control->config.events->peers->doubts(control->config.context, peer))
		recheck_begin(control, peer, count, in_vain > AT_ONCE_MOST ? control->config.interval_ns / 50 : 0, &far, &why);
	else
		control->config.events->peers->closed(control->config.context, peer, &why);
}

/* ---- messages ---- */

static void dispatch(struct control *control, uint32_t peer, const struct control_msg *msg)
{
	const struct control_subscribers *subscribers = control->config.subscribers;

	if (subscribers && subscribers->of[msg->type])
		subscribers->of[msg->type](control->config.context, peer, msg);
}

void control_peer_connection_receive(struct control *control, struct connection *connection)
{
	struct reliable *reliable = &control->reliable[connection->peer];
	struct control_msg msg;

	/* An event may queue messages on this connection, but not remove it. */
	while (connection->state == CONNECTION_OPEN && connection_receive(connection, &msg)) {
		enum reliable_heard heard = control_reliable_hear(reliable, &msg);

		connection->is_spoken_on = true;
		if (heard == RELIABLE_NEW)
			dispatch(control, connection->peer, &msg);
		else if (heard == RELIABLE_BROKEN)
			connection_nonsense(connection);
	}
}

bool control_peer_connection_speak(struct control *control, struct connection *connection)
{
	struct reliable *reliable = &control->reliable[connection->peer];
	struct control_msg msg;

	while (connection->state == CONNECTION_OPEN && control_reliable_next(reliable, connection->queued, &msg)) {
		connection->queued = msg.number;
		connection_queue(connection, &msg);
	}
	if (connection->state == CONNECTION_OPEN && control_reliable_owes(reliable, &msg))
		connection_queue(connection, &msg);
	bool has_some = connection->buffer.out_at < connection->buffer.out_bytes;
	connection_flush(connection);
	return has_some;
}

void control_peer_connection_opened(struct control *control, struct connection *connection)
{
	const struct connection *spoken_on = control->control[connection->peer];

	if (connection->dial.is_check)
		log_write(control->config.log, LOG_LEVEL_WARN, LOG_NET,
		          "rank %u: %s, although it is there; another connection stands", connection->peer,
		          connection->dial.doubt.text);
	if (!spoken_on || spoken_on->state != CONNECTION_OPEN || spoken_on->lane < connection->lane)
		control->control[connection->peer] = connection;
	if (control->control[connection->peer] == connection) {
		control_reliable_begin(&control->reliable[connection->peer]);
		(void)control_peer_connection_speak(control, connection);
	}
}

void control_peer_connection_turn(struct control *control, struct connection *connection)
{
	control_peer_connection_receive(control, connection);
	if (connection->is_spoken_on && connection->lane > 0)
		retire_older(control, connection);
	if (connection->state != CONNECTION_OPEN)
		return;
	/* Acknowledgements and answers may take another connection than the messages they are for. */
	struct connection *spoken_on = control->control[connection->peer];
	if (spoken_on && spoken_on->state == CONNECTION_OPEN && control_peer_connection_speak(control, spoken_on))
		control_watch(control, spoken_on);
}

void control_peer_connection_send(struct control *control, uint32_t peer, const struct control_msg *msg)
{
	if (!control->control[peer])
		control_dial(control, peer, HELLO_CONTROL, 0, connect_patience_ns(control, clock_now_ns()));
	struct connection *connection = control->control[peer];
	if (!connection) /* the attempt has failed for good at once */
		return;
	if (!control_reliable_say(&control->reliable[peer], msg))
		connection_overflows(connection);
	control->has_queued = true;
}

/* By the kernel's account, so that bytes count that this thread had no time to read. */
uint64_t control_last_sign(const struct control *control, uint32_t peer, uint64_t now)
{
	uint64_t latest = 0;

	for (const struct connection *connection = control_first(control); connection;
	     connection = connection_next(connection)) {
		if (is_control_to(connection, peer) && connection->state == CONNECTION_OPEN) {
			uint64_t sign = connection_last_sign(connection, now);

			latest = sign > latest ? sign : latest;
		}
	}
	return latest;
}

/* ---- rails ---- */

void control_leave_rail(struct control *control, uint32_t peer, uint32_t rail)
{
	const struct connection *connection = control->control[peer];

	if (!connection || connection->local || connection->state != CONNECTION_OPEN ||
	    find_newer(control, peer, connection->lane))
		return;
	if (rail == ROUTE_ANY || connection_rail(connection, &control->ways) == rail)
		control_dial(control, peer, HELLO_CONTROL, connection->lane + 1, control->config.interval_ns / 2);
}

void control_find_stuck(struct control *control, uint64_t now, uint64_t for_ns,
                        void (*found)(void *context, uint32_t peer, uint32_t rail))
{
	for (uint32_t peer = 0; peer < control->config.roster->size; peer++) {
		struct connection *connection = control->control[peer];
		struct path_stats stats = {0};

		if (!connection || connection->local || connection->state != CONNECTION_OPEN)
			continue;
		path_read(connection->fd, &stats);
		if (path_waits_in_vain(&connection->dial.patience, &stats, now, for_ns))
			found(control->config.context, peer, connection_rail(connection, &control->ways));
	}
}
