/*
 * connect.c - connections that this rank makes: attempts one after the other, and what becomes of them.
 */
#include <sys/epoll.h>

#include "base/clock.h"
#include "node/control/peer_connection.h"

/*
 * Until all have met others may take as long as a call that lets them in. And when that is over whoever does not know for whom it waits asks the
 * others, who know more than that one did not answer here.
 */
uint64_t dials_patience_ns(const struct steward *steward, uint64_t now)
{
	const struct steward_config *config = &steward->config;
	uint64_t until = steward->has_settled ? 0 : config->join->deadline_ns + config->late_ns;

	return until > now + config->patience_ns ? until - now : config->patience_ns;
}

void dials_unreachable(struct steward *steward, uint32_t peer, uint8_t purpose, uint32_t lane, const struct error *why)
{
	const struct steward_events *events = steward->config.events;

	if (purpose == HELLO_LANE || purpose == HELLO_AGAIN)
		events->lane_unreachable(steward->config.context, peer, lane, purpose == HELLO_AGAIN, why);
	else if (purpose == HELLO_PROBE)
		events->probe_unreachable(steward->config.context, peer, lane, why);
	else
		events->control_unreachable(steward->config.context, peer, why);
}

/*
 * A rank listens before anybody knows its addresses, and until it ends: if nobody does at any of them, it has ended. Until all have met it does not
 * matter when it was dialled: who is looked for as another one has ended is not waited for anew.
 */
static bool has_ended(const struct steward *steward, const struct link *link, uint64_t now)
{
	uint32_t addresses = link->local ? 1 : steward->config.roster->cards[link->peer].address_count;
	uint64_t since = steward->has_settled ? link->dialled_ns : steward->opened_ns;

	return link->refusals > addresses && now >= since + steward->config.interval_ns / 10;
}

void dials_failed(struct steward *steward, struct link *link)
{
	uint64_t now = clock_now_ns();
	bool for_good = link->err.status == ESP_EMISMATCH || now >= link->deadline_ns || has_ended(steward, link, now) ||
	                check_is_refused(steward, link);

	link_abandon(link);
	if (link->rotates && link->err.status == ESP_ETIMEOUT)
		steward->config.events->rail_late(steward->config.context, link->peer, link->rail);
	if (!for_good) {
		uint64_t wait = backoff_next_ns(&link->backoff);

		link->state = LINK_WAITING;
		link->retry_ns = now + wait < link->deadline_ns ? now + wait : link->deadline_ns;
		return;
	}
	bool is_check = link->is_check, is_spare = controls_is_spare(steward, link);
	struct error why = is_check ? link->doubt : link->err;
	uint32_t peer = link->peer, lane = link->lane;
	uint8_t purpose = link->purpose;
	steward_remove(steward, link);
	if (is_spare)
		return;
	if (is_check)
		steward->config.events->closed(steward->config.context, peer, &why);
	else
		dials_unreachable(steward, peer, purpose, lane, &why);
}

void steward_dial_now(struct steward *steward, struct link *link)
{
	link->err = (struct error){0};
	handshake_fini(&link->handshake);
	if (link->rotates)
		link->rail = steward->config.events->rail(steward->config.context, link->peer, link->lane, link->attempts);
	link_dial(link, &steward->ways);
	if (link->state == LINK_BROKEN)
		dials_failed(steward, link);
	else
		steward_watch(steward, link, EPOLL_CTL_ADD);
}

void dials_look_for(struct steward *steward, uint32_t peer)
{
	struct link *link = steward->control[peer];
	uint64_t now = clock_now_ns();

	if (!link) {
		steward_dial(steward, peer, HELLO_CONTROL, 0, dials_patience_ns(steward, now));
	} else if (link->state == LINK_WAITING) {
		backoff_init(&link->backoff, rng_next(&steward->rng));
		link->retry_ns = now;
	}
}

struct link *steward_new_dial(struct steward *steward, uint32_t peer, enum hello_purpose purpose, uint32_t lane, uint64_t patience_ns)
{
	struct link *link = link_new();

	if (!link)
		return NULL;
	link->dialled = true;
	link->local = (purpose == HELLO_CONTROL || purpose == HELLO_SHELF) && steward->config.is_local[peer];
	link->peer = peer;
	link->purpose = (uint8_t)purpose;
	link->lane = lane;
	link->rail = purpose == HELLO_LANE || purpose == HELLO_PROBE ? lane % steward->config.rails->count : ROUTE_ANY;
	link->rotates = steward->config.rails->count > 1 &&
	                (purpose == HELLO_LANE || purpose == HELLO_AGAIN || (purpose == HELLO_CONTROL && lane > 0));
	link->dialled_ns = clock_now_ns();
	link->deadline_ns = link->dialled_ns + patience_ns;
	backoff_init(&link->backoff, rng_next(&steward->rng));
	steward_insert(steward, link);
	if (purpose == HELLO_CONTROL && !steward->control[peer])
		steward->control[peer] = link;
	return link;
}

void steward_dial(struct steward *steward, uint32_t peer, enum hello_purpose purpose, uint32_t lane, uint64_t patience_ns)
{
	struct link *link = steward_new_dial(steward, peer, purpose, lane, patience_ns);
	struct error why;

	if (link) {
		steward_dial_now(steward, link);
		return;
	}
	error_set(&why, ESP_ENOMEM, "no memory for a connection");
	dials_unreachable(steward, peer, (uint8_t)purpose, lane, &why);
}
