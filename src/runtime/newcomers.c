/*
 * newcomers.c - who waits at the door of a rank: how many they are, whether they are there still, and who is let in.
 */
#include <sys/epoll.h>

#include "runtime/steward_parts.h"

/* Has it answered? */
static void set_sure(struct steward *steward, struct link *link, bool is_sure)
{
	if (is_sure && !link->is_sure)
		atomic_fetch_add(&steward->sure, 1);
	else if (!is_sure && link->is_sure)
		atomic_fetch_sub(&steward->sure, 1);
	link->is_sure = is_sure;
}

/* All that it can say is that it is there; and, once it is let in, as which rank it has joined. */
void newcomers_turn(struct steward *steward, struct link *link)
{
	struct control_msg msg;

	if (!link->is_announced) {
		link->is_announced = true;
		atomic_fetch_add(&steward->newcomers, 1);
		set_sure(steward, link, true);
	}
	while (link->state == LINK_DOOR && link_receive(link, &msg)) {
		if (msg.type == CONTROL_ECHO && !link->is_invited)
			set_sure(steward, link, true);
		else if (msg.type == CONTROL_ECHO && msg.about != UINT32_MAX)
			link->has_joined = true;
	}
}

void newcomers_gone(struct steward *steward, struct link *link)
{
	if (link->purpose != HELLO_DOOR || !link->is_announced)
		return;
	if (link->is_invited) {
		if (!link->has_joined)
			atomic_fetch_add(&steward->lost, 1);
		return;
	}
	set_sure(steward, link, false);
	atomic_fetch_sub(&steward->newcomers, 1);
}

static void tell(struct steward *steward, struct link *link, const struct control_msg *msg)
{
	link_queue(link, msg);
	link_flush(link);
	steward_watch(steward, link, EPOLL_CTL_MOD);
}

uint32_t steward_newcomers(const struct steward *steward)
{
	return atomic_load(&steward->newcomers);
}

uint32_t steward_sure_newcomers(const struct steward *steward)
{
	return atomic_load(&steward->sure);
}

uint32_t steward_lost_newcomers(const struct steward *steward)
{
	return atomic_load(&steward->lost);
}

void steward_ask_newcomers(struct steward *steward)
{
	struct control_msg msg = {.type = CONTROL_BEAT, .from = steward->ways.self, .about = UINT32_MAX, .peer = UINT32_MAX};

	for (struct link *link = steward->links; link; link = link->next) {
		if (link->state != LINK_DOOR || link->is_invited)
			continue;
		set_sure(steward, link, false);
		tell(steward, link, &msg);
	}
}

uint32_t steward_invite(struct steward *steward, const struct control_msg *first, uint32_t count)
{
	struct control_msg msg = *first;
	struct link *link = steward->links;
	uint32_t invited = 0;

	while (link && link->next) /* who came first */
		link = link->next;
	for (; link && invited < count; link = link->before) {
		if (link->state != LINK_DOOR || link->is_invited || !link->is_sure)
			continue;
		set_sure(steward, link, false);
		link->is_invited = true;
		atomic_fetch_sub(&steward->newcomers, 1);
		tell(steward, link, &msg);
		msg.about++;
		invited++;
	}
	atomic_fetch_add(&steward->lost, count - invited);
	return invited;
}
