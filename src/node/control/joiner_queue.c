/*
 * joiner_queue.c - joiners that wait at this node to be admitted: their number, whether they are alive, and admitting
 * them. Control thread only, but for the two counters.
 */
#include <stdio.h>
#include <string.h>

#include "base/clip.h"
#include "base/clock.h"
#include "node/control/control_state.h"
#include "wire/rendezvous_msg.h"

/* Sets is_sure: the joiner has answered. Keeps the counter. */
static void set_sure(struct control *control, struct connection *connection, bool is_sure)
{
	if (is_sure && !connection->joiner.is_sure)
		atomic_fetch_add(&control->sure, 1);
	else if (!is_sure && connection->joiner.is_sure)
		atomic_fetch_sub(&control->sure, 1);
	connection->joiner.is_sure = is_sure;
}

static void send_msg(struct control *control, struct connection *connection, const struct control_msg *msg)
{
	connection_queue(connection, msg);
	connection_flush(connection);
	control_watch(control, connection);
}

/* Asks the joiner for an echo. The message has the liveness interval, so that a joiner can leave a node that stops. */
static void ask_joiner(struct control *control, struct connection *connection)
{
	struct control_msg msg = {
		.type = CONTROL_BEAT,
		.from = control->ways.self,
		.about = UINT32_MAX,
		.beat.silence_ns = control->config.interval_ns,
	};

	send_msg(control, connection, &msg);
}

/* ---- joiners that do not fit ---- */

static void refuse(struct control *control, struct connection *connection, const uint8_t *bytes)
{
	struct control_msg msg = {.type = CONTROL_REFUSE, .from = control->ways.self, .about = UINT32_MAX};
	struct error why;

	control->config.events->joiners->explain(control->config.context, bytes, &why);
	log_write(control->config.log, LOG_LEVEL_WARN, LOG_JOIN, "not let in: %s", why.text);
	clip(msg.refuse.text, sizeof(msg.refuse.text), "%s", why.text);
	connection->joiner.is_refused = true;
	send_msg(control, connection, &msg);
}

/* An unfit joiner sends its arrival, gets the reason of the refusal, and goes. */
static void turn_away(struct control *control, struct connection *connection)
{
	const uint8_t *bytes = NULL;

	if (connection->retry_ns == 0)
		connection->retry_ns = clock_now_ns() + control->config.interval_ns / 2;
	if (!connection->joiner.is_refused && connection_receive_bytes(connection, RENDEZVOUS_ARRIVAL_BYTES, &bytes))
		refuse(control, connection, bytes);
	else if (connection->joiner.is_refused)
		connection_check_closed(connection);
}

/* ---- waiting joiners ---- */

/* The joiner is alive, and names itself; an admitted one also names the rank as which it has joined. */
static void on_echo(struct control *control, struct connection *connection, const struct control_msg *msg)
{
	connection->joiner.asked_ns = 0;
	snprintf(connection->joiner.who, sizeof(connection->joiner.who), "%.*s", (int)sizeof(connection->joiner.who) - 1,
	         msg->echo.who);
	if (!connection->joiner.is_invited) {
		set_sure(control, connection, true);
	} else if (msg->about != UINT32_MAX) {
		connection->joiner.has_joined = true;
		connection->retry_ns = 0;
	}
}

void joiner_queue_turn(struct control *control, struct connection *connection)
{
	struct control_msg msg;

	if (connection->joiner.is_unfit) {
		turn_away(control, connection);
		return;
	}
	if (!connection->is_announced) {
		connection->is_announced = true;
		connection->joiner.asked_ns = clock_now_ns();
		connection->retry_ns = connection->joiner.asked_ns + control->config.interval_ns / 2;
		ask_joiner(control, connection);
		atomic_fetch_add(&control->joiners, 1);
		set_sure(control, connection, true);
	}
	while (connection->state == CONNECTION_JOINER && connection_receive(connection, &msg)) {
		if (msg.type == CONTROL_ECHO)
			on_echo(control, connection, &msg);
	}
}

void joiner_queue_due(struct control *control, struct connection *connection, uint64_t now)
{
	uint64_t interval = control->config.interval_ns;

	joiner_queue_turn(control, connection); /* an answer may have come while this thread was busy or stopped */
	if (connection->state != CONNECTION_JOINER || connection->joiner.has_joined)
		return;
	if (connection->joiner.is_unfit || (connection->joiner.is_invited && connection->joiner.asked_ns > 0 &&
	                                    now >= connection->joiner.asked_ns + interval / 8 * 6)) {
		connection_silent(connection);
		return;
	}
	connection->retry_ns = now + (connection->joiner.is_invited ? interval / 8 : interval / 2);
	if (connection->joiner.asked_ns == 0) { /* a waiting joiner that owes an answer is not asked again */
		connection->joiner.asked_ns = now;
		ask_joiner(control, connection);
	}
}

/* An admitted joiner has not joined, and no rank waits for it any longer: reports it as lost. */
static void report_lost(struct control *control, const struct connection *connection)
{
	const char *how = connection->err.status == ESP_ETIMEOUT
	                      ? "has not answered since, and has not joined: it is stopped, or cut off"
	                      : "went away before it had joined";

	char why[CONTROL_TEXT];

	clip(why, sizeof(why), "%s, which rank %u has let in to become rank %u, %s",
	     connection->joiner.who[0] ? connection->joiner.who : "a joiner", control->ways.self,
	     connection->joiner.invited_as, how);
	control->config.events->joiners->lost(control->config.context, connection->joiner.promised_to, 1, why);
}

void joiner_queue_gone(struct control *control, struct connection *connection)
{
	if (connection->purpose != HELLO_JOINER || !connection->is_announced)
		return;
	if (connection->joiner.is_invited) {
		if (!connection->joiner.has_joined && !connection->joiner.is_refused)
			report_lost(control, connection);
		return;
	}
	set_sure(control, connection, false);
	atomic_fetch_sub(&control->joiners, 1);
}

uint32_t control_joiners(const struct control *control)
{
	return atomic_load(&control->joiners);
}

uint32_t control_sure_joiners(const struct control *control)
{
	return atomic_load(&control->sure);
}

void control_ask_joiners(struct control *control)
{
	for (struct connection *connection = control_first(control); connection; connection = connection_next(connection)) {
		if (connection->state != CONNECTION_JOINER || connection->joiner.is_invited || connection->joiner.is_unfit ||
		    connection->joiner.is_promised)
			continue;
		set_sure(control, connection, false);
		ask_joiner(control, connection);
	}
}

/* The oldest connection: new ones are inserted at the head of the list. */
static struct connection *first_in_line(const struct control *control)
{
	return list_item(control->connections.last, struct connection, link);
}

static struct connection *next_in_line(const struct connection *connection)
{
	return list_item(connection->link.before, struct connection, link);
}

uint32_t control_promise(struct control *control, uint32_t channel, uint32_t most)
{
	uint32_t count = 0;

	for (struct connection *connection = first_in_line(control); connection && (most == 0 || count < most);
	     connection = next_in_line(connection)) {
		bool is_taken = connection->joiner.is_invited ||
		                (connection->joiner.is_promised && connection->joiner.promised_to != channel);

		if (connection->state != CONNECTION_JOINER || is_taken || !connection->joiner.is_sure)
			continue;
		connection->joiner.is_promised = true;
		connection->joiner.promised_to = channel;
		count++;
	}
	return count;
}

void control_release(struct control *control, uint32_t channel)
{
	for (struct connection *connection = control_first(control); connection; connection = connection_next(connection)) {
		if (connection->joiner.is_promised && !connection->joiner.is_invited &&
		    connection->joiner.promised_to == channel)
			connection->joiner.is_promised = false;
	}
}

/* ---- admitting ---- */

static void report_missing(struct control *control, uint32_t channel, uint32_t count)
{
	char why[CONTROL_TEXT];

	clip(why, sizeof(why), "%u joiner%s that waited at rank %u went away before %s let in", count,
	     count == 1 ? "" : "s", control->ways.self, count == 1 ? "it was" : "they were");
	control->config.events->joiners->lost(control->config.context, channel, count, why);
}

uint32_t control_invite(struct control *control, const struct control_msg *first, uint32_t count)
{
	struct control_msg msg = *first;
	uint32_t invited = 0;

	for (struct connection *connection = first_in_line(control); connection && invited < count;
	     connection = next_in_line(connection)) {
		if (connection->state != CONNECTION_JOINER || connection->joiner.is_invited ||
		    !connection->joiner.is_promised || connection->joiner.promised_to != msg.channel)
			continue;
		set_sure(control, connection, false);
		connection->joiner.is_invited = true;
		connection->joiner.invited_as = msg.about;
		connection->joiner.asked_ns = 0;
		connection->retry_ns = clock_now_ns() + control->config.interval_ns / 8;
		atomic_fetch_sub(&control->joiners, 1);
		send_msg(control, connection, &msg);
		msg.about++;
		invited++;
	}
	if (invited < count)
		report_missing(control, msg.channel, count - invited);
	return invited;
}

void control_uninvite(struct control *control, const struct control_msg *why)
{
	for (struct connection *connection = control_first(control); connection; connection = connection_next(connection)) {
		if (connection->state != CONNECTION_JOINER || !connection->joiner.is_invited || connection->joiner.has_joined ||
		    connection->joiner.is_refused || connection->joiner.promised_to != why->channel)
			continue;
		connection->joiner.is_unfit = connection->joiner.is_refused = true;
		connection->retry_ns = clock_now_ns() + control->config.interval_ns / 2;
		send_msg(control, connection, why);
	}
}
