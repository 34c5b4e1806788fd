/*
 * joiners.c - who waits at the door of a rank: how many they are, whether they are there still, and who is let in.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clip.h"
#include "base/clock.h"
#include "node/control/control_state.h"
#include "rank/join/rendezvous.h"

/* Has it answered? */
static void set_sure(struct steward *steward, struct link *link, bool is_sure)
{
	if (is_sure && !link->is_sure)
		atomic_fetch_add(&steward->sure, 1);
	else if (!is_sure && link->is_sure)
		atomic_fetch_sub(&steward->sure, 1);
	link->is_sure = is_sure;
}

static void tell(struct steward *steward, struct link *link, const struct control_msg *msg)
{
	link_queue(link, msg);
	link_flush(link);
	steward_watch(steward, link, EPOLL_CTL_MOD);
}

/* Is it there? And it is told how often it will hear from us, so that it can leave if we are stopped. */
static void ask(struct steward *steward, struct link *link)
{
	struct control_msg msg = {
		.type = CONTROL_BEAT, .from = steward->ways.self, .about = UINT32_MAX, .sequence = steward->config.interval_ns, .peer = UINT32_MAX,
	};

	tell(steward, link, &msg);
}

/* ---- who does not fit ---- */

static void refuse(struct steward *steward, struct link *link, const uint8_t *bytes)
{
	const struct join_config *join = steward->config.join;
	struct control_msg msg = {.type = CONTROL_REFUSE, .from = steward->ways.self, .about = UINT32_MAX, .peer = UINT32_MAX};
	struct store_arrival arrival;
	struct error why;

	if (store_arrival_decode(bytes, &arrival))
		store_explain_newcomer(&arrival, steward->ways.self, join->launch.job, join->settings, &why);
	else
		error_set(&why, ESP_EMISMATCH, "a newcomer of another job, or with other settings, handed in a damaged card");
	log_write(join->log, LOG_LEVEL_WARN, LOG_JOIN, "not let in: %s", why.text);
	clip(msg.text, sizeof(msg.text), "%s", why.text);
	link->is_refused = true;
	tell(steward, link, &msg);
}

/* It hands in what it is, hears what does not fit, and goes. */
static void turn_away(struct steward *steward, struct link *link)
{
	const uint8_t *bytes = NULL;

	if (link->retry_ns == 0)
		link->retry_ns = clock_now_ns() + steward->config.interval_ns / 2;
	if (!link->is_refused && link_receive_bytes(link, STORE_ARRIVAL_BYTES, &bytes))
		refuse(steward, link, bytes);
	else if (link->is_refused)
		link_look_at_door(link);
}

/* ---- who waits ---- */

/* It is there, and says who it is; and, once it is let in, as which rank it has joined. */
static void on_echo(struct steward *steward, struct link *link, const struct control_msg *msg)
{
	link->asked_ns = 0;
	snprintf(link->who, sizeof(link->who), "%.*s", (int)sizeof(link->who) - 1, msg->text);
	if (!link->is_invited) {
		set_sure(steward, link, true);
	} else if (msg->about != UINT32_MAX) {
		link->has_joined = true;
		link->retry_ns = 0;
	}
}

void newcomers_turn(struct steward *steward, struct link *link)
{
	struct control_msg msg;

	if (link->is_unfit) {
		turn_away(steward, link);
		return;
	}
	if (!link->is_announced) {
		link->is_announced = true;
		link->asked_ns = clock_now_ns();
		link->retry_ns = link->asked_ns + steward->config.interval_ns / 2;
		ask(steward, link);
		atomic_fetch_add(&steward->newcomers, 1);
		set_sure(steward, link, true);
	}
	while (link->state == LINK_DOOR && link_receive(link, &msg)) {
		if (msg.type == CONTROL_ECHO)
			on_echo(steward, link, &msg);
	}
}

void newcomers_due(struct steward *steward, struct link *link, uint64_t now)
{
	uint64_t interval = steward->config.interval_ns;

	newcomers_turn(steward, link); /* it may have answered while we did not look, or were stopped ourselves */
	if (link->state != LINK_DOOR || link->has_joined)
		return;
	if (link->is_unfit || (link->is_invited && link->asked_ns > 0 && now >= link->asked_ns + interval / 8 * 6)) {
		link_silent(link);
		return;
	}
	link->retry_ns = now + (link->is_invited ? interval / 8 : interval / 2);
	if (link->asked_ns == 0) { /* one that does not answer, and is not let in, is left in peace */
		link->asked_ns = now;
		ask(steward, link);
	}
}

/* One that was let in has not joined, and is not waited for any longer. */
static void lose(struct steward *steward, const struct link *link)
{
	const char *how = link->err.status == ESP_ETIMEOUT ? "has not answered since, and has not joined: it is stopped, or cut off"
	                                                   : "went away before it had joined";

	char why[CONTROL_TEXT];

	clip(why, sizeof(why), "%s, whom rank %u has let in to become rank %u, %s", link->who[0] ? link->who : "a newcomer", steward->ways.self,
	     link->invited_as, how);
	steward->config.events->newcomers_lost(steward->config.context, link->promised_to, 1, why);
}

void newcomers_gone(struct steward *steward, struct link *link)
{
	if (link->purpose != HELLO_DOOR || !link->is_announced)
		return;
	if (link->is_invited) {
		if (!link->has_joined && !link->is_refused)
			lose(steward, link);
		return;
	}
	set_sure(steward, link, false);
	atomic_fetch_sub(&steward->newcomers, 1);
}

uint32_t steward_newcomers(const struct steward *steward)
{
	return atomic_load(&steward->newcomers);
}

uint32_t steward_sure_newcomers(const struct steward *steward)
{
	return atomic_load(&steward->sure);
}

void steward_ask_newcomers(struct steward *steward)
{
	for (struct link *link = steward->links; link; link = link->next) {
		if (link->state != LINK_DOOR || link->is_invited || link->is_unfit || link->is_promised)
			continue;
		set_sure(steward, link, false);
		ask(steward, link);
	}
}

/* Who came first. */
static struct link *first_in_line(const struct steward *steward)
{
	struct link *link = steward->links;

	while (link && link->next)
		link = link->next;
	return link;
}

uint32_t steward_promise(struct steward *steward, uint32_t channel, uint32_t most)
{
	uint32_t count = 0;

	for (struct link *link = first_in_line(steward); link && (most == 0 || count < most); link = link->before) {
		bool is_taken = link->is_invited || (link->is_promised && link->promised_to != channel);

		if (link->state != LINK_DOOR || is_taken || !link->is_sure)
			continue;
		link->is_promised = true;
		link->promised_to = channel;
		count++;
	}
	return count;
}

void steward_release(struct steward *steward, uint32_t channel)
{
	for (struct link *link = steward->links; link; link = link->next) {
		if (link->is_promised && !link->is_invited && link->promised_to == channel)
			link->is_promised = false;
	}
}

/* ---- letting in ---- */

static void miss(struct steward *steward, uint32_t channel, uint32_t count)
{
	char why[CONTROL_TEXT];

	clip(why, sizeof(why), "%u newcomer%s at the door of rank %u went away before %s let in", count, count == 1 ? "" : "s", steward->ways.self,
	     count == 1 ? "it was" : "they were");
	steward->config.events->newcomers_lost(steward->config.context, channel, count, why);
}

uint32_t steward_invite(struct steward *steward, const struct control_msg *first, uint32_t count)
{
	struct control_msg msg = *first;
	uint32_t invited = 0;

	for (struct link *link = first_in_line(steward); link && invited < count; link = link->before) {
		if (link->state != LINK_DOOR || link->is_invited || !link->is_promised || link->promised_to != msg.channel)
			continue;
		set_sure(steward, link, false);
		link->is_invited = true;
		link->invited_as = msg.about;
		link->asked_ns = 0;
		link->retry_ns = clock_now_ns() + steward->config.interval_ns / 8;
		atomic_fetch_sub(&steward->newcomers, 1);
		tell(steward, link, &msg);
		msg.about++;
		invited++;
	}
	if (invited < count)
		miss(steward, msg.channel, count - invited);
	return invited;
}

void steward_uninvite(struct steward *steward, const struct control_msg *why)
{
	for (struct link *link = steward->links; link; link = link->next) {
		if (link->state != LINK_DOOR || !link->is_invited || link->has_joined || link->is_refused || link->promised_to != why->channel)
			continue;
		link->is_unfit = link->is_refused = true;
		link->retry_ns = clock_now_ns() + steward->config.interval_ns / 2;
		tell(steward, link, why);
	}
}
