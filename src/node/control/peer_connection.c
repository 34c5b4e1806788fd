#include "node/control/peer_connection.h"

#include <sys/epoll.h>

#include "base/clock.h"

#define AT_ONCE_MOST 2u /* if connections end on which nothing was heard, the next one is made a little later: both ends may have dialled */
#define IN_VAIN_MOST 8u /* and then no more: something in between lets nothing through, whatever it answers */

/* ---- which of several ---- */

static bool is_control_to(const struct link *link, uint32_t peer)
{
	return link->purpose == HELLO_CONTROL && link->peer == peer && (link->dialled || link->is_announced);
}

/* A control connection to the same rank that was made later than this one, or NULL. */
static struct link *find_newer(const struct steward *steward, uint32_t peer, uint32_t than)
{
	for (struct link *link = steward->links; link; link = link->next) {
		if (is_control_to(link, peer) && link->lane > than)
			return link;
	}
	return NULL;
}

/* The other end speaks on a connection that was made later: nothing is said on this one any more. */
static void retire_older(struct steward *steward, const struct link *newer)
{
	struct link *following;

	for (struct link *link = steward->links; link; link = following) {
		following = link->next;
		if (is_control_to(link, newer->peer) && link->lane < newer->lane)
			steward_remove(steward, link);
	}
}

bool controls_is_spare(const struct steward *steward, const struct link *link)
{
	if (link->purpose != HELLO_CONTROL || link->lane == 0)
		return false;
	for (const struct link *other = steward->links; other; other = other->next) {
		if (other != link && is_control_to(other, link->peer) && other->lane >= link->lane)
			return true;
	}
	return false;
}

void controls_choose_other(struct steward *steward, uint32_t peer)
{
	struct link *best = NULL;

	for (struct link *link = steward->links; link; link = link->next) {
		bool is_open = link->state == LINK_OPEN, best_is_open = best && best->state == LINK_OPEN;

		if (!is_control_to(link, peer) || link->state == LINK_BROKEN)
			continue;
		if (!best || is_open > best_is_open || (is_open == best_is_open && link->lane > best->lane))
			best = link;
	}
	steward->control[peer] = best;
	talk_begin(&steward->talks[peer]);
	steward->has_queued = steward->has_posted = true; /* what it was not given goes there before the thread sleeps */
}

void controls_ended(struct steward *steward, struct link *link)
{
	uint32_t peer = link->peer, count = link->lane, in_vain = talk_broke(&steward->talks[peer]);
	bool may_be_there = !link->local && (link->err.status == ESP_EPEER || link->err.status == ESP_ELINK) && in_vain <= IN_VAIN_MOST;
	bool has_newer = find_newer(steward, peer, count) != NULL;
	struct card_address far = link->far;
	struct error why = link->err;

	steward_remove(steward, link);
	if (has_newer)
		return;
	/* If both ends dialled there is another one, and what was said there comes first: "I leave", for instance. */
	for (struct link *other = steward->links; other; other = other->next) {
		if (other->peer == peer && other->is_announced && other->purpose == HELLO_CONTROL)
			controls_receive(steward, other);
	}
	if (may_be_there && steward->config.events->doubts(steward->config.context, peer))
		check_begin(steward, peer, count, in_vain > AT_ONCE_MOST ? steward->config.interval_ns / 50 : 0, &far, &why);
	else
		steward->config.events->closed(steward->config.context, peer, &why);
}

/* ---- speaking and hearing ---- */

void controls_receive(struct steward *steward, struct link *link)
{
	struct talk *talk = &steward->talks[link->peer];
	struct control_msg msg;

	/* An event may queue messages on this link, but not remove it. */
	while (link->state == LINK_OPEN && link_receive(link, &msg)) {
		enum talk_heard heard = talk_hear(talk, &msg);

		link->is_spoken_on = true;
		if (heard == TALK_NEW)
			steward->config.events->message(steward->config.context, link->peer, &msg);
		else if (heard == TALK_BROKEN)
			link_nonsense(link);
	}
}

bool controls_speak(struct steward *steward, struct link *link)
{
	struct talk *talk = &steward->talks[link->peer];
	struct control_msg msg;

	while (link->state == LINK_OPEN && talk_next(talk, link->queued, &msg)) {
		link->queued = msg.number;
		link_queue(link, &msg);
	}
	if (link->state == LINK_OPEN && talk_owes(talk, &msg))
		link_queue(link, &msg);
	bool has_some = link->out_at < link->out_bytes;
	link_flush(link);
	return has_some;
}

void controls_opened(struct steward *steward, struct link *link)
{
	const struct link *spoken_on = steward->control[link->peer];

	if (link->is_check)
		log_write(steward->config.join->log, LOG_LEVEL_WARN, LOG_NET, "rank %u: %s, although it is there; another connection stands",
		          link->peer, link->doubt.text);
	if (!spoken_on || spoken_on->state != LINK_OPEN || spoken_on->lane < link->lane)
		steward->control[link->peer] = link;
	if (steward->control[link->peer] == link) {
		talk_begin(&steward->talks[link->peer]);
		(void)controls_speak(steward, link);
	}
}

void controls_turn(struct steward *steward, struct link *link)
{
	controls_receive(steward, link);
	if (link->is_spoken_on && link->lane > 0)
		retire_older(steward, link);
	if (link->state != LINK_OPEN)
		return;
	/* Word of what was heard, and answers, may go another way than what came. */
	struct link *spoken_on = steward->control[link->peer];
	if (spoken_on && spoken_on->state == LINK_OPEN && controls_speak(steward, spoken_on))
		steward_watch(steward, spoken_on, EPOLL_CTL_MOD);
}

void controls_send(struct steward *steward, uint32_t peer, const struct control_msg *msg)
{
	if (!steward->control[peer])
		steward_dial(steward, peer, HELLO_CONTROL, 0, dials_patience_ns(steward, clock_now_ns()));
	struct link *link = steward->control[peer];
	if (!link) /* the dialling has failed for good at once */
		return;
	if (!talk_say(&steward->talks[peer], msg))
		link_overflows(link);
	steward->has_queued = true;
}

/* The kernel has what came, also what this thread had no time to read. */
uint64_t steward_last_sign(const struct steward *steward, uint32_t peer, uint64_t now)
{
	uint64_t latest = 0;

	for (const struct link *link = steward->links; link; link = link->next) {
		if (is_control_to(link, peer) && link->state == LINK_OPEN) {
			uint64_t sign = link_last_sign(link, now);

			latest = sign > latest ? sign : latest;
		}
	}
	return latest;
}

/* ---- rails ---- */

void steward_leave_rail(struct steward *steward, uint32_t peer, uint32_t rail)
{
	const struct link *link = steward->control[peer];

	if (!link || link->local || link->state != LINK_OPEN || find_newer(steward, peer, link->lane))
		return;
	if (rail == ROUTE_ANY || link_rail(link, &steward->ways) == rail)
		steward_dial(steward, peer, HELLO_CONTROL, link->lane + 1, steward->config.interval_ns / 2);
}

void steward_find_stuck(struct steward *steward, uint64_t now, uint64_t for_ns, void (*found)(void *context, uint32_t peer, uint32_t rail))
{
	for (uint32_t peer = 0; peer < steward->config.roster->size; peer++) {
		struct link *link = steward->control[peer];
		struct tcp_stats stats = {0};

		if (!link || link->local || link->state != LINK_OPEN)
			continue;
		tcp_path(link->fd, &stats);
		if (tcp_waits_in_vain(&link->patience, &stats, now, for_ns))
			found(steward->config.context, peer, link_rail(link, &steward->ways));
	}
}
