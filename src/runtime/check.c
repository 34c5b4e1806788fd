/*
 * check.c - a connection for control has ended without a word: is the rank still there?
 *
 * If its process has ended, its kernel refuses another connection at once. If something in between has reset it, the rank
 * proves on another one that it is there, or dials us for the same reason.
 */
#include <sys/epoll.h>

#include "base/clock.h"
#include "runtime/steward_parts.h"

void check_begin(struct steward *steward, uint32_t peer, const struct card_address *far, const struct error *why)
{
	const struct card *card = &steward->config.roster->cards[peer];
	struct link *link;

	for (link = steward->links; link; link = link->next) {
		if (link->is_check && link->peer == peer)
			return;
	}
	link = steward_new_dial(steward, peer, HELLO_CONTROL, 0, steward->config.interval_ns / 10);
	if (!link) {
		steward->config.events->closed(steward->config.context, peer, why);
		return;
	}
	link->is_check = true;
	link->doubt = *why;
	link->doubt_ns = clock_now_ns();
	for (uint32_t i = 0; i < card->address_count; i++) { /* where it was a moment ago comes first */
		if (card_address_same(&card->addresses[i], far))
			link->attempts = i;
	}
	steward_dial_now(steward, link);
}

bool check_is_refused(const struct steward *steward, const struct link *link)
{
	return link->is_check && link->refusals >= steward->config.roster->cards[link->peer].address_count;
}

bool check_goes_on(const struct steward *steward, struct link *link, uint64_t now)
{
	if (!link->is_check || link->state != LINK_SHAKING)
		return false;
	link->deadline_ns = now + steward->config.interval_ns;
	return true;
}

uint64_t check_end(struct steward *steward, const struct link *proof)
{
	for (struct link *link = steward->links; link; link = link->next) {
		if (link->is_check && link->peer == proof->peer) {
			link->is_check = false;
			link->is_spare = true;
			return link->doubt_ns;
		}
	}
	return 0;
}

void check_pass_queue_on(struct steward *steward, const struct link *spare)
{
	for (struct link *other = steward->links; other; other = other->next) {
		if (other->peer == spare->peer && other->purpose == HELLO_CONTROL && other->state == LINK_OPEN) {
			link_take_queue(other, spare);
			link_flush(other);
			steward_watch(steward, other, EPOLL_CTL_MOD);
			return;
		}
	}
}
