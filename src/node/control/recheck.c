/*
 * recheck.c - the control connection to a rank has ended without a word: is the rank still there?
 *
 * If its process has ended, its kernel refuses another connection at once. If something in between has reset it, or does not
 * carry it any more, the rank proves on another one that it is there, or dials us for the same reason; on that one all is
 * said again that was not heard (reliable.h), and nobody above notices.
 */
#include "node/control/control_state.h"

void recheck_begin(struct control *control, uint32_t peer, uint32_t count, uint64_t wait_ns, const struct node_address *far,
                 const struct error *why)
{
	const struct node_info *card = &control->config.roster->nodes[peer];
	bool has_rails = control->config.rails->count > 1; /* which take their time: those that are dead do not answer */
	struct connection *connection = control_new_dial(control, peer, HELLO_CONTROL, count + 1, control->config.interval_ns / (has_rails ? 2 : 10));

	if (!connection) {
		control->config.events->peers->closed(control->config.context, peer, why);
		return;
	}
	connection->dial.is_check = true;
	connection->dial.doubt = *why;
	for (uint32_t i = 0; i < card->address_count && !has_rails; i++) { /* where it was a moment ago comes first */
		if (node_address_same(&card->addresses[i], far))
			connection->dial.attempts = i;
	}
	connection->retry_ns = connection->dial.dialled_ns + wait_ns;
	if (wait_ns == 0)
		control_dial_now(control, connection);
}

bool recheck_is_refused(const struct control *control, const struct connection *connection)
{
	/* A rail is known to lead there, and the others may be dead; some other address may be anybody's. */
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
