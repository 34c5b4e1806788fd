/*
 * recheck.c - the control connection to a rank has ended without a word: is the rank still there?
 *
 * If its process has ended, its kernel refuses another connection at once. If something in between has reset it, or does not
 * carry it any more, the rank proves on another one that it is there, or dials us for the same reason; on that one all is
 * said again that was not heard (reliable.h), and nobody above notices.
 */
#include "node/control/control_state.h"

void check_begin(struct steward *steward, uint32_t peer, uint32_t count, uint64_t wait_ns, const struct card_address *far,
                 const struct error *why)
{
	const struct card *card = &steward->config.roster->cards[peer];
	bool has_rails = steward->config.rails->count > 1; /* which take their time: those that are dead do not answer */
	struct link *link = steward_new_dial(steward, peer, HELLO_CONTROL, count + 1, steward->config.interval_ns / (has_rails ? 2 : 10));

	if (!link) {
		steward->config.events->closed(steward->config.context, peer, why);
		return;
	}
	link->is_check = true;
	link->doubt = *why;
	for (uint32_t i = 0; i < card->address_count && !has_rails; i++) { /* where it was a moment ago comes first */
		if (card_address_same(&card->addresses[i], far))
			link->attempts = i;
	}
	link->retry_ns = link->dialled_ns + wait_ns;
	if (wait_ns == 0)
		steward_dial_now(steward, link);
}

bool check_is_refused(const struct steward *steward, const struct link *link)
{
	/* A rail is known to lead there, and the others may be dead; some other address may be anybody's. */
	uint32_t enough = link->rotates ? 1 : steward->config.roster->cards[link->peer].address_count;

	return link->is_check && link->refusals >= enough;
}

bool check_goes_on(const struct steward *steward, struct link *link, uint64_t now)
{
	if (!link->is_check || link->state != LINK_SHAKING)
		return false;
	link->deadline_ns = now + steward->config.interval_ns;
	return true;
}
