/*
 * link_control.c - the control connection of a worker while its job runs: reasons of failures, silence, late calls.
 */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/status.h"
#include "hub/worker/link_state.h"

#define ANSWER_PATIENCE (2 * NS_PER_S)
#define REASON_PATIENCE (1 * NS_PER_S)

static void on_edge(struct poller_subject *subject, uint32_t events)
{
	struct link_hub *hub = (struct link_hub *)(void *)subject;

	hub->readable |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	hub->writable |= (events & (EPOLLOUT | EPOLLERR)) != 0;
}

static void fail(struct hub_link *link, enum esp_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void fail(struct hub_link *link, enum esp_status status, const char *format, ...)
{
	struct error why = {.status = status};
	va_list args;

	va_start(args, format);
	vsnprintf(why.text, sizeof(why.text), format, args);
	va_end(args);
	link_fail(link, &why);
}

/* From here on nothing is sent to the hub. */
static void end(struct link_hub *hub)
{
	hub->state = LINK_CONTROL_ENDED;
}

/* The connection is no more. A hub that has let the worker go, or a job that has failed already, makes that no failure.
 */
static void lose(struct hub_link *link, struct link_hub *hub)
{
	bool was_open = hub->state == LINK_CONTROL_OPEN;

	end(hub);
	if (was_open)
		fail(link, ESP_EPEER, "the hub at %.100s has closed the connection: its process has ended, or was killed",
		     hub->socket->hub);
}

/* ---- out ---- */

static void flush(struct link_hub *hub)
{
	const uint8_t *bytes;
	size_t n;

	while (hub->writable && (n = msg_stream_output(&hub->socket->stream, &bytes)) > 0) {
		ssize_t sent = send(hub->socket->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent > 0)
			msg_stream_sent(&hub->socket->stream, (size_t)sent);
		else if (errno == EAGAIN)
			hub->writable = false;
		else if (errno != EINTR) {
			hub->writable = false;
			hub->readable = true; /* a reason may lie there; then the end is found */
		}
	}
}

static void put(struct hub_link *link, struct link_hub *hub, const struct hub_msg *msg)
{
	if (msg_stream_put(&hub->socket->stream, msg) == ESP_OK)
		flush(hub);
	else
		fail(link, ESP_ELINK, "the hub at %.100s takes no messages", hub->socket->hub);
}

/* ---- in ---- */

static bool is_any_asked(const struct hub_link *link)
{
	for (uint32_t i = 0; i < link->hub_count; i++) {
		if (link->hubs[i].is_asked)
			return true;
	}
	return false;
}

/* A hub's answer that names no worker leaves it to the others to name one. */
static void on_missing(struct hub_link *link, struct link_hub *hub, const struct hub_msg_missing *missing)
{
	struct hub_op *late = link->control.late;

	hub->is_asked = false;
	if (!late || missing->tensor != late->call.tensor)
		return; /* the call has ended meanwhile */
	if (missing->workers)
		fail(link, ESP_ETIMEOUT, "the deadline has passed: tensor %u waits for %s", missing->tensor, missing->text);
	else if (!is_any_asked(link))
		fail(link, ESP_ETIMEOUT, "the deadline has passed: tensor %u is on its way to or from the hub at %.100s",
		     missing->tensor, hub->socket->hub);
}

/* False: the message does not belong here. */
static bool take(struct hub_link *link, struct link_hub *hub, const struct hub_msg *msg)
{
	const struct hub_msg pong = {.type = HUB_MSG_PONG};

	switch ((enum hub_msg_type)msg->type) {
	case HUB_MSG_PING:
		put(link, hub, &pong);
		return true;
	case HUB_MSG_PONG:
		return true;
	case HUB_MSG_WHY:
		end(hub);
		fail(link, (enum esp_status)msg->why.status, "%s", msg->why.text);
		return true;
	case HUB_MSG_MISSING:
		on_missing(link, hub, &msg->missing);
		return true;
	case HUB_MSG_GRANT:
	case HUB_MSG_SPOIL:
	case HUB_MSG_RESULT:
		return link->delay_bound > 0 && link_update_on_msg(link, msg);
	case HUB_MSG_OK:
		if (hub->state != LINK_CONTROL_LEAVING)
			return false;
		end(hub);
		return true;
	default:
		return false;
	}
}

static void take_all(struct hub_link *link, struct link_hub *hub)
{
	struct hub_msg msg;

	while (hub->state != LINK_CONTROL_ENDED) {
		enum esp_status status = msg_stream_take(&hub->socket->stream, &msg);

		if (status == ESP_PENDING)
			return;
		if (status != ESP_OK) {
			end(hub);
			fail(link, ESP_ECORRUPT, "the hub at %.100s sent bytes that are no message of a hub", hub->socket->hub);
		} else if (!take(link, hub, &msg)) {
			fail(link, ESP_ECORRUPT, "the hub at %.100s sent a message that does not belong here", hub->socket->hub);
		}
	}
}

static void receive(struct hub_link *link, struct link_hub *hub, uint64_t now_ns)
{
	while (hub->readable && hub->state != LINK_CONTROL_ENDED) {
		uint8_t *at;
		size_t room = msg_stream_room(&hub->socket->stream, &at);
		ssize_t got = recv(hub->socket->fd, at, room, MSG_DONTWAIT);

		if (got > 0) {
			silence_heard(&hub->silence, now_ns);
			msg_stream_arrived(&hub->socket->stream, (size_t)got);
			take_all(link, hub);
		} else if (got < 0 && errno == EAGAIN) {
			hub->readable = false;
		} else if (got == 0 || errno != EINTR) {
			hub->readable = false;
			lose(link, hub);
		}
	}
}

/* ---- time ---- */

/* Bytes that have come since this thread looked count. */
static void believe_silence(struct hub_link *link, struct link_hub *hub, uint64_t now_ns)
{
	hub->readable = true;
	receive(link, hub, now_ns);
	if (hub->state == LINK_CONTROL_ENDED || hub->silence.asked_ns == 0)
		return;
	end(hub);
	fail(link, ESP_EPEER, "the hub at %.100s has not been heard for 10 s: it is stopped, or cut off",
	     hub->socket->hub);
}

static void look_for_silence(struct hub_link *link, struct link_hub *hub, uint64_t now_ns)
{
	const struct hub_msg ping = {.type = HUB_MSG_PING};
	enum silence_verdict verdict = silence_look(&hub->silence, now_ns, SILENCE_MOST);

	if (verdict == SILENCE_ASKS)
		put(link, hub, &ping);
	else if (verdict == SILENCE_DEAD)
		believe_silence(link, hub, now_ns);
}

/* Has a lane of the hub a part of the call that has not ended? */
static bool has_part(const struct link_hub *hub, const struct hub_op *op)
{
	for (uint32_t i = 0; op->state == HUB_OP_HANDED && i < hub->lanes; i++) {
		if (op->parts[hub->first_lane + i].status == ESP_PENDING)
			return true;
	}
	return op->state != HUB_OP_HANDED;
}

static void ask(struct hub_link *link, struct hub_op *late, uint64_t now_ns)
{
	const struct hub_msg msg = {.type = HUB_MSG_ASK, .ask = late->call.tensor};

	link->control.late = late;
	link->control.answer_by_ns = now_ns + ANSWER_PATIENCE;
	for (uint32_t i = 0; i < link->hub_count; i++) {
		struct link_hub *hub = &link->hubs[i];

		hub->is_asked = hub->state == LINK_CONTROL_OPEN && has_part(hub, late);
		if (hub->is_asked)
			put(link, hub, &msg);
	}
}

static void fail_unanswered(struct hub_link *link)
{
	const struct link_hub *hub = link->hubs;

	while (hub + 1 < link->hubs + link->hub_count && !hub->is_asked)
		hub++;
	fail(link, ESP_ETIMEOUT, "the deadline has passed: tensor %u waits for the hub at %.100s, which does not answer",
	     link->control.late->call.tensor, hub->socket->hub);
}

/* The call that is due first is late: the hubs know which workers are missing. */
static void look_for_late(struct hub_link *link, uint64_t now_ns)
{
	struct link_control *control = &link->control;
	struct hub_op *first = link->under_way.first;
	char missing[HUB_WHY_TEXT];

	if (link->failure.status != ESP_OK)
		return;
	if (control->late && now_ns >= control->answer_by_ns)
		fail_unanswered(link);
	else if (control->late || !first || now_ns < first->until_ns)
		return;
	else if (link_host_missing(link, first, missing, sizeof(missing)))
		fail(link, ESP_ETIMEOUT, "the deadline has passed: tensor %u waits for %s", first->call.tensor, missing);
	else if (!is_any_asked(link))
		ask(link, first, now_ns);
}

static void look_for_reason(struct hub_link *link, uint64_t now_ns)
{
	if (link->control.reason_by_ns == 0 || now_ns < link->control.reason_by_ns)
		return;
	link->control.reason_by_ns = 0;
	if (link->control.culprit != UINT32_MAX && link->failure.status == ESP_OK)
		link_control_tell(link, &link->control.suspicion, link->control.culprit);
	link_fail(link, &link->control.suspicion);
}

void link_control_tell(struct hub_link *link, const struct error *why, uint32_t worker)
{
	struct hub_msg msg = {.type = HUB_MSG_WHY, .why = {.status = why->status, .worker = worker}};

	snprintf(msg.why.text, sizeof(msg.why.text), "%s", why->text);
	for (uint32_t i = 0; i < link->hub_count; i++) {
		if (link->hubs[i].state == LINK_CONTROL_OPEN)
			put(link, &link->hubs[i], &msg);
	}
}

const struct link_hub *link_control_hub_of(const struct hub_link *link, uint32_t lane)
{
	const struct link_hub *hub = link->hubs;

	assert(lane < link->lane_count);
	while (lane >= hub->first_lane + hub->lanes)
		hub++;
	return hub;
}

void link_control_suspect_why(struct hub_link *link, const struct error *why, uint32_t culprit)
{
	if (link->control.reason_by_ns != 0)
		return;
	link->control.suspicion = *why;
	link->control.culprit = culprit;
	link->control.reason_by_ns = clock_now_ns() + REASON_PATIENCE;
}

void link_control_suspect(struct hub_link *link, enum esp_status status, uint32_t lane, uint64_t now_ns)
{
	struct link_control *control = &link->control;

	if (control->reason_by_ns != 0)
		return;
	const struct link_hub *hub = link_control_hub_of(link, lane);
	error_set(&control->suspicion, status, "the connection of lane %u to the hub at %.100s broke: %s",
	          lane - hub->first_lane, hub->socket->hub, status_text(status));
	control->culprit = UINT32_MAX;
	control->reason_by_ns = now_ns + REASON_PATIENCE;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_time(const struct hub_link *link)
{
	const struct link_control *control = &link->control;
	uint64_t when = UINT64_MAX;

	for (uint32_t i = 0; i < link->hub_count; i++) {
		const struct link_hub *hub = &link->hubs[i];

		if (hub->state != LINK_CONTROL_ENDED)
			when = earlier(when, silence_next(&hub->silence, SILENCE_MOST));
	}
	if (link->failure.status != ESP_OK)
		return when;
	if (control->late)
		when = earlier(when, control->answer_by_ns);
	else if (!is_any_asked(link) && link->under_way.first)
		when = earlier(when, link->under_way.first->until_ns);
	return control->reason_by_ns != 0 ? earlier(when, control->reason_by_ns) : when;
}

static void look_for_update(struct hub_link *link)
{
	struct hub_msg msg;

	if (link->delay_bound == 0)
		return;
	if (link->hubs[0].state == LINK_CONTROL_OPEN && link_update_take_msg(link, &msg))
		put(link, &link->hubs[0], &msg);
	if (link->failure.status == ESP_OK && link_update_is_late(link))
		fail(link, ESP_ETIMEOUT, "the deadline has passed: the hub at %.100s has not answered an update",
		     link->hubs[0].socket->hub);
}

uint64_t link_control_turn(struct hub_link *link, uint64_t now_ns)
{
	bool has_ended = false;

	for (uint32_t i = 0; i < link->hub_count; i++) {
		receive(link, &link->hubs[i], now_ns);
		flush(&link->hubs[i]);
	}
	look_for_update(link);
	for (uint32_t i = 0; i < link->hub_count; i++) {
		if (link->hubs[i].state != LINK_CONTROL_ENDED)
			look_for_silence(link, &link->hubs[i], now_ns);
		has_ended |= link->hubs[i].state == LINK_CONTROL_ENDED;
	}
	look_for_late(link, now_ns);
	look_for_reason(link, has_ended ? link->control.reason_by_ns : now_ns);
	return next_time(link);
}

bool link_control_has_work(const struct hub_link *link)
{
	for (uint32_t i = 0; i < link->hub_count; i++) {
		if (link->hubs[i].readable && link->hubs[i].state != LINK_CONTROL_ENDED)
			return true;
	}
	return false;
}

/* ---- life ---- */

enum esp_status link_control_begin(struct hub_link *link, struct error *err)
{
	for (uint32_t i = 0; i < link->hub_count; i++) {
		struct link_hub *hub = &link->hubs[i];

		hub->subject.ready = on_edge;
		hub->readable = hub->writable = true;
		silence_heard(&hub->silence, clock_now_ns());
		if (poller_watch(&link->poller, hub->socket->fd, &hub->subject) != ESP_OK)
			return error_set(err, ESP_ELIMIT, "no memory to watch the connection to the hub");
	}
	return ESP_OK;
}

void link_control_leave(struct hub_link *link)
{
	const struct hub_msg leave = {.type = HUB_MSG_LEAVE};

	for (uint32_t i = 0; i < link->hub_count; i++) {
		struct link_hub *hub = &link->hubs[i];

		if (hub->state != LINK_CONTROL_OPEN)
			continue;
		hub->state = LINK_CONTROL_LEAVING;
		if (msg_stream_put(&hub->socket->stream, &leave) != ESP_OK)
			end(hub);
	}
}

bool link_control_is_leaving(const struct hub_link *link)
{
	for (uint32_t i = 0; i < link->hub_count; i++) {
		if (link->hubs[i].state == LINK_CONTROL_LEAVING)
			return true;
	}
	return false;
}

void link_control_end(struct hub_link *link)
{
	for (uint32_t i = 0; i < link->hub_count; i++) {
		if (link->sockets[i].fd >= 0)
			poller_unwatch(&link->poller, link->sockets[i].fd);
	}
}
