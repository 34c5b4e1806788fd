/*
 * connect.c - connections that this node makes: attempts one after the other, and their outcome. Control thread only.
 */

#include "base/clock.h"
#include "node/control/peer_connection.h"

/*
 * Until all have joined, peers may take as long as a joining call has time, and late_ns more: a rank that gives up then
 * asks its peers, and they know more than that one rank did not answer here.
 */
uint64_t connect_patience_ns(const struct control *control, uint64_t now)
{
	const struct control_config *config = &control->config;
	uint64_t until = control->has_settled ? 0 : config->join_until_ns + config->late_ns;

	return until > now + config->patience_ns ? until - now : config->patience_ns;
}

void connect_unreachable(struct control *control, uint32_t peer, uint8_t purpose, uint32_t lane,
                         const struct error *why)
{
	const struct control_events *events = control->config.events;

	if (purpose == HELLO_LANE || purpose == HELLO_AGAIN)
		events->lanes->unreachable(control->config.context, peer, lane, purpose == HELLO_AGAIN, why);
	else if (purpose == HELLO_PROBE)
		events->rails->probe_unreachable(control->config.context, peer, lane, why);
	else
		events->peers->unreachable(control->config.context, peer, why);
}

/*
 * A rank listens before its addresses are known to others, and until it ends: if no process listens at any of them, the
 * rank has ended. Until all have joined the time counts from the opening and not from the dialling: a rank that is
 * looked for because another one has ended is not waited for anew.
 */
static bool has_ended(const struct control *control, const struct connection *connection, uint64_t now)
{
	uint32_t addresses = connection->local ? 1 : control->config.roster->nodes[connection->peer].address_count;
	uint64_t since = control->has_settled ? connection->dial.dialled_ns : control->opened_ns;

	return connection->dial.refusals > addresses && now >= since + control->config.interval_ns / 10;
}

void connect_failed(struct control *control, struct connection *connection)
{
	uint64_t now = clock_now_ns();
	bool for_good = connection->err.status == ESP_EMISMATCH || now >= connection->deadline_ns ||
	                has_ended(control, connection, now) || recheck_is_refused(control, connection);

	control_unwatch(control, connection);
	connection_abandon(connection);
	if (connection->dial.rotates && control->config.events->rails && connection->err.status == ESP_ETIMEOUT)
		control->config.events->rails->late(control->config.context, connection->peer, connection->dial.rail);
	if (!for_good) {
		uint64_t wait = backoff_next_ns(&connection->dial.backoff);

		connection_enter(connection, CONNECTION_WAITING);
		connection->retry_ns = now + wait < connection->deadline_ns ? now + wait : connection->deadline_ns;
		return;
	}
	bool is_check = connection->dial.is_check, is_spare = control_peer_connection_is_spare(control, connection);
	struct error why = is_check ? connection->dial.doubt : connection->err;
	uint32_t peer = connection->peer, lane = connection->lane;
	uint8_t purpose = connection->purpose;
	control_remove(control, connection);
	if (is_spare)
		return;
	if (is_check)
		control->config.events->peers->closed(control->config.context, peer, &why);
	else
		connect_unreachable(control, peer, purpose, lane, &why);
}

void control_dial_now(struct control *control, struct connection *connection)
{
	connection->err = (struct error){0};
	handshake_fini(&connection->handshake);
	if (connection->dial.rotates && control->config.events->rails)
		connection->dial.rail = control->config.events->rails->choose(control->config.context, connection->peer,
		                                                              connection->lane, connection->dial.attempts);
	connection_dial(connection, &control->ways);
	if (connection->state == CONNECTION_BROKEN)
		connect_failed(control, connection);
	else
		control_watch(control, connection);
}

void connect_look_for(struct control *control, uint32_t peer)
{
	struct connection *connection = control->control[peer];
	uint64_t now = clock_now_ns();

	if (!connection) {
		control_dial(control, peer, HELLO_CONTROL, 0, connect_patience_ns(control, now));
	} else if (connection->state == CONNECTION_WAITING) {
		backoff_init(&connection->dial.backoff, rng_next(&control->rng));
		connection->retry_ns = now;
	}
}

struct connection *control_new_dial(struct control *control, uint32_t peer, enum hello_purpose purpose, uint32_t lane,
                                    uint64_t patience_ns)
{
	struct connection *connection = connection_new();

	if (!connection)
		return NULL;
	connection->dialled = true;
	connection->local = (purpose == HELLO_CONTROL || purpose == HELLO_FDS) && control->config.is_local[peer];
	connection->peer = peer;
	connection->purpose = (uint8_t)purpose;
	connection->lane = lane;
	connection->dial.rail =
		purpose == HELLO_LANE || purpose == HELLO_PROBE ? lane % control->config.rails->count : ROUTE_ANY;
	connection->dial.rotates = control->config.rails->count > 1 &&
	                (purpose == HELLO_LANE || purpose == HELLO_AGAIN || (purpose == HELLO_CONTROL && lane > 0));
	connection->dial.dialled_ns = clock_now_ns();
	connection->deadline_ns = connection->dial.dialled_ns + patience_ns;
	backoff_init(&connection->dial.backoff, rng_next(&control->rng));
	control_insert(control, connection);
	if (purpose == HELLO_CONTROL && !control->control[peer])
		control->control[peer] = connection;
	return connection;
}

void control_dial(struct control *control, uint32_t peer, enum hello_purpose purpose, uint32_t lane,
                  uint64_t patience_ns)
{
	struct connection *connection = control_new_dial(control, peer, purpose, lane, patience_ns);
	struct error why;

	if (connection) {
		control_dial_now(control, connection);
		return;
	}
	error_set(&why, ESP_ENOMEM, "no memory for a connection");
	connect_unreachable(control, peer, (uint8_t)purpose, lane, &why);
}
