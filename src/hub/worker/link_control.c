/*
 * link_control.c - the control connection of a worker while its job runs: reasons of failures, silence, late calls.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/status.h"
#include "hub/worker/link_state.h"

#define SILENCE_PING (3 * NS_PER_S)
#define SILENCE_MOST (10 * NS_PER_S) /* a hub that says nothing for so long is considered dead */
#define ANSWER_PATIENCE (2 * NS_PER_S)
#define REASON_PATIENCE (1 * NS_PER_S)

static void on_edge(struct poller_subject *subject, uint32_t events)
{
	struct link_control *control = (struct link_control *)(void *)subject;

	control->readable |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	control->writable |= (events & (EPOLLOUT | EPOLLERR)) != 0;
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

/* The connection is no more. A hub that has let the worker go, or a job that has failed already, makes that no failure.
 */
static void lose(struct hub_link *link)
{
	if (link->control.state == LINK_CONTROL_OPEN)
		fail(link, ESP_EPEER, "the hub at %.100s has closed the connection: its process has ended, or was killed",
		     link->socket.hub);
	link->control.state = LINK_CONTROL_ENDED;
}

/* ---- out ---- */

static void flush(struct hub_link *link)
{
	const uint8_t *bytes;
	size_t n;

	while (link->control.writable && (n = msg_stream_output(&link->socket.stream, &bytes)) > 0) {
		ssize_t sent = send(link->socket.fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent > 0)
			msg_stream_sent(&link->socket.stream, (size_t)sent);
		else if (errno == EAGAIN)
			link->control.writable = false;
		else if (errno != EINTR) {
			link->control.writable = false;
			link->control.readable = true; /* a reason may lie there; then the end is found */
		}
	}
}

static void put(struct hub_link *link, const struct hub_msg *msg)
{
	if (msg_stream_put(&link->socket.stream, msg) == ESP_OK)
		flush(link);
	else
		fail(link, ESP_ELINK, "the hub at %.100s takes no messages", link->socket.hub);
}

/* ---- in ---- */

static void on_missing(struct hub_link *link, const struct hub_msg_missing *missing)
{
	struct hub_op *late = link->control.late;

	link->control.is_asking = false;
	link->control.late = NULL;
	if (!late || missing->tensor != late->call.tensor)
		return; /* the call has ended meanwhile */
	if (missing->workers)
		fail(link, ESP_ETIMEOUT, "the deadline has passed: tensor %u waits for %s", missing->tensor, missing->text);
	else
		fail(link, ESP_ETIMEOUT, "the deadline has passed: tensor %u is on its way to or from the hub at %.100s",
		     missing->tensor, link->socket.hub);
}

static void take(struct hub_link *link, const struct hub_msg *msg)
{
	const struct hub_msg pong = {.type = HUB_MSG_PONG};

	switch ((enum hub_msg_type)msg->type) {
	case HUB_MSG_PING:
		put(link, &pong);
		return;
	case HUB_MSG_PONG:
		return;
	case HUB_MSG_WHY:
		fail(link, (enum esp_status)msg->why.status, "%s", msg->why.text);
		link->control.state = LINK_CONTROL_ENDED;
		return;
	case HUB_MSG_MISSING:
		on_missing(link, &msg->missing);
		return;
	case HUB_MSG_GRANT:
	case HUB_MSG_SPOIL:
	case HUB_MSG_RESULT:
		if (link_update_on_msg(link, msg))
			return;
		break;
	case HUB_MSG_OK:
		if (link->control.state == LINK_CONTROL_LEAVING) {
			link->control.state = LINK_CONTROL_ENDED;
			return;
		}
		break;
	default:
		break;
	}
	fail(link, ESP_ECORRUPT, "the hub at %.100s sent a message that does not belong here", link->socket.hub);
}

static void take_all(struct hub_link *link)
{
	struct hub_msg msg;

	while (link->control.state != LINK_CONTROL_ENDED) {
		enum esp_status status = msg_stream_take(&link->socket.stream, &msg);

		if (status == ESP_PENDING)
			return;
		if (status == ESP_OK) {
			take(link, &msg);
			continue;
		}
		fail(link, ESP_ECORRUPT, "the hub at %.100s sent bytes that are no message of a hub", link->socket.hub);
		link->control.state = LINK_CONTROL_ENDED;
	}
}

static void receive(struct hub_link *link, uint64_t now_ns)
{
	while (link->control.readable && link->control.state != LINK_CONTROL_ENDED) {
		uint8_t *at;
		size_t room = msg_stream_room(&link->socket.stream, &at);
		ssize_t got = recv(link->socket.fd, at, room, MSG_DONTWAIT);

		if (got > 0) {
			link->control.heard_ns = now_ns;
			link->control.is_pinged = false;
			msg_stream_arrived(&link->socket.stream, (size_t)got);
			take_all(link);
		} else if (got < 0 && errno == EAGAIN) {
			link->control.readable = false;
		} else if (got == 0 || errno != EINTR) {
			link->control.readable = false;
			lose(link);
		}
	}
}

/* ---- time ---- */

static void look_for_silence(struct hub_link *link, uint64_t now_ns)
{
	const struct hub_msg ping = {.type = HUB_MSG_PING};
	uint64_t silent = now_ns - link->control.heard_ns;

	if (silent > SILENCE_MOST) {
		fail(link, ESP_EPEER, "the hub at %.100s has not been heard for 10 s: it is stopped, or cut off",
		     link->socket.hub);
		link->control.state = LINK_CONTROL_ENDED;
	} else if (silent > SILENCE_PING && !link->control.is_pinged) {
		link->control.is_pinged = true;
		put(link, &ping);
	}
}

/* The call that is due first is late: the hub knows which workers are missing. */
static void look_for_late(struct hub_link *link, uint64_t now_ns)
{
	struct link_control *control = &link->control;
	struct hub_op *first = link->under_way.first;

	char missing[HUB_WHY_TEXT];

	if (!control->late && first && now_ns >= first->until_ns &&
	    link_host_missing(link, first, missing, sizeof(missing))) {
		fail(link, ESP_ETIMEOUT, "the deadline has passed: tensor %u waits for %s", first->call.tensor, missing);
	} else if (control->late && now_ns >= control->answer_by_ns) {
		fail(link, ESP_ETIMEOUT,
		     "the deadline has passed: tensor %u waits for the hub at %.100s, which does not answer",
		     control->late->call.tensor, link->socket.hub);
	} else if (!control->late && !control->is_asking && first && now_ns >= first->until_ns) {
		const struct hub_msg ask = {.type = HUB_MSG_ASK, .ask = first->call.tensor};

		control->late = first;
		control->is_asking = true;
		control->answer_by_ns = now_ns + ANSWER_PATIENCE;
		put(link, &ask);
	}
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
	if (link->control.state == LINK_CONTROL_OPEN)
		put(link, &msg);
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
	error_set(&control->suspicion, status, "the connection of lane %u to the hub at %.100s broke: %s", lane,
	          link->socket.hub, status_text(status));
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
	uint64_t when = control->heard_ns + (control->is_pinged ? SILENCE_MOST : SILENCE_PING) + 1;

	if (control->late)
		when = earlier(when, control->answer_by_ns);
	else if (!control->is_asking && link->under_way.first)
		when = earlier(when, link->under_way.first->until_ns);
	return control->reason_by_ns != 0 ? earlier(when, control->reason_by_ns) : when;
}

static void look_for_update(struct hub_link *link)
{
	struct hub_msg msg;

	if (link->control.state == LINK_CONTROL_OPEN && link_update_take_msg(link, &msg))
		put(link, &msg);
	if (link->failure.status == ESP_OK && link_update_is_late(link))
		fail(link, ESP_ETIMEOUT, "the deadline has passed: the hub at %.100s has not answered an update",
		     link->socket.hub);
}

uint64_t link_control_turn(struct hub_link *link, uint64_t now_ns)
{
	receive(link, now_ns);
	flush(link);
	look_for_update(link);
	if (link->control.state == LINK_CONTROL_ENDED) {
		look_for_reason(link, link->control.reason_by_ns);
		return UINT64_MAX;
	}
	look_for_silence(link, now_ns);
	look_for_late(link, now_ns);
	look_for_reason(link, now_ns);
	return next_time(link);
}

/* ---- life ---- */

enum esp_status link_control_begin(struct hub_link *link, struct error *err)
{
	struct link_control *control = &link->control;

	*control = (struct link_control){.subject.ready = on_edge, .readable = true, .writable = true,
	                                 .heard_ns = clock_now_ns()};
	if (poller_watch(&link->poller, link->socket.fd, &control->subject) != ESP_OK)
		return error_set(err, ESP_ELIMIT, "no memory to watch the connection to the hub");
	return ESP_OK;
}

void link_control_end(struct hub_link *link)
{
	if (link->socket.fd >= 0)
		poller_unwatch(&link->poller, link->socket.fd);
}
