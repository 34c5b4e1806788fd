/*
 * recheck.c - a control connection has ended without a CONTROL_LEFT: is the peer still there? Control thread only.
 *
 * If the process has ended, its kernel refuses another connection at once. If a middlebox has reset the connection, or
 * does not carry it any more, the peer is proved on another one, or dials this rank for the same reason; messages that
 * were not acknowledged are sent again on it (reliable.h), and upper layers do not notice.
 */
#include "node/control/control_state.h"

void recheck_begin(struct control *control, uint32_t peer, uint32_t count, uint64_t wait_ns,
                   const struct node_address *far, const struct error *why)
{
	const struct node_info *info = &control->config.roster->nodes[peer];
	bool has_rails = control->config.rails->count > 1; /* more time is needed: dead rails do not answer */
	struct connection *connection = control_new_dial(control, peer, HELLO_CONTROL, count + 1,
	                                                 control->config.interval_ns / (has_rails ? 2 : 10));

	if (!connection) {
		control->config.events->peers->closed(control->config.context, peer, why);
		return;
	}
	connection->dial.is_check = true;
	connection->dial.doubt = *why;
	for (uint32_t i = 0; i < info->address_count && !has_rails; i++) { /* its last address comes first */
		if (node_address_same(&info->addresses[i], far))
			connection->dial.attempts = i;
	}
	connection->retry_ns = connection->dial.dialled_ns + wait_ns;
	if (wait_ns == 0)
		control_dial_now(control, connection);
}

bool recheck_is_refused(const struct control *control, const struct connection *connection)
{
	/* A rail is known to lead to the peer, and the others may be dead; an address may belong to another host. */
	uint32_t enough = connection->dial.rotates ? 1 : control->config.roster->nodes[connection->peer].address_count;

	return connection->dial.is_check && connection->dial.refusals >= enough;
}

bool recheck_goes_on(const struct control *control, struct connection *connection, uint64_t now)
{
	if (!connection->dial.is_check || connection->state != CONNECTION_SHAKING)
		return false;
	connection->deadline_ns = now + control->config.interval_ns;
	return true;
}
