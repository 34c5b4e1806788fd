#include "node/control/connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/auth/handshake_check.h"
#include "node/net/address.h"
#include "wire/frame.h"

#define UNANSWERED (250 * NS_PER_MS) /* then a rank that dials has itself announced: its kernel tries again after a second */
#define CONNECT_PATIENCE (3 * NS_PER_S) /* for a kernel to answer at one address, where there are others */
#define PACE_MS 1000 /* the least that the kernel takes */
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* of Linux; the C library's header may not have it yet */
#endif
#define IN_MOST 16u /* messages that are received at a time: when all leave there are thousands */
/* More than this queued for one peer: it does not read, and is given up. */
#define OUT_MOST (131072u * CONTROL_BYTES)

struct link *link_new(void)
{
	struct link *link = calloc(1, sizeof(*link));

	if (link)
		link->fd = -1;
	return link;
}

void link_free(struct link *link)
{
	if (!link)
		return;
	if (link->fd >= 0)
		close(link->fd);
	handshake_fini(&link->handshake);
	free(link->in);
	free(link->out);
	free(link);
}

/* what, and of a connection that is being dialled where to: "cannot connect to 10.0.0.2 port 4711 through eth1: No route to host" */
static bool broke(struct link *link, enum esp_status status, const char *what, int error)
{
	bool has_way = link->way[0] && link->handshake.state != HANDSHAKE_DONE;

	link->state = LINK_BROKEN;
	error_set(&link->err, status, "%s%s%s%s%s", what, has_way ? " to " : "", has_way ? link->way : "", error ? ": " : "",
	          error ? strerror(error) : "");
	return false;
}

/* ---- dialling ---- */

/* By port and process: on different addresses of a host the same port may be somebody else's. */
static socklen_t local_name(const struct card *card, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* Abstract: the first byte is zero, the name ends where the length says, and nothing is left on disk. */
	int length = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "espalier-%u-%u", card->port, card->pid);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

enum esp_status steward_local_socket(const struct card *card, int *out_fd, struct error *err)
{
	struct sockaddr_un name;
	socklen_t length = local_name(card, &name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return error_set(err, errno == EMFILE || errno == ENFILE ? ESP_ELIMIT : ESP_EIO, "no Unix socket: %s",
		                 strerror(errno));
	if (bind(fd, (struct sockaddr *)&name, length) != 0 || listen(fd, SOMAXCONN) != 0) {
		error_set(err, ESP_EIO, "cannot listen on the Unix socket @espalier-%u-%u: %s", card->port, card->pid, strerror(errno));
		close(fd);
		return err->status;
	}
	*out_fd = fd;
	return ESP_OK;
}

socklen_t card_socket_name(const struct card *card, uint32_t address, struct sockaddr_storage *out)
{
	return card_address_to(&card->addresses[address], card->port, 0, out);
}

static void not_connected(struct link *link, int why)
{
	link->refusals = why == ECONNREFUSED ? link->refusals + 1 : 0;
	broke(link, ESP_ELINK, "cannot connect", why);
}

/*
 * What TCP cuts its stream into should be a multiple of FRAME_STEP, as all that is sent is: the kernel leaves the last few bytes of a page unused where a
 * packet ends just before them, and from there on every copy is out of step (wire/frame.h). That
 * shows where packets are as large as a loopback's: two of these make the largest that it carries. Twelve bytes of each are TCP's time stamps; where
 * they are off it is in vain.
 */
#define SEGMENT_WITHIN_HOST (1016u * FRAME_STEP + 12)

/* A socket for the attempt's way, bound to the own end of it. -1: errno says why, *out_what at what. */
static int open_for(const struct route *route, uint32_t segment_bytes, const char **out_what)
{
	struct sockaddr_storage source;
	int on = 1, segment = (int)segment_bytes;
	int fd = socket(route->to.family == CARD_IPV4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	*out_what = "no socket";
	if (fd < 0)
		return -1;
	if (segment > 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
	if (route->device[0]) /* if the kernel does not let us, its routes decide */
		(void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, route->device, (socklen_t)strlen(route->device));
	if (!route->has_source)
		return fd;
	*out_what = "cannot bind to the own address on the way";
	(void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)); /* ports count per pair of ends, not per host */
	socklen_t length = card_address_to(&route->source, 0, route->scope, &source);
	if (bind(fd, (struct sockaddr *)&source, length) == 0)
		return fd;
	int why = errno;
	close(fd);
	errno = why;
	return -1;
}

static void connect_to(struct link *link, const struct sockaddr *name, socklen_t length)
{
	link->state = LINK_CONNECTING;
	/* EAGAIN: the backlog of a Unix socket is full. */
	if (connect(link->fd, name, length) != 0 && errno != EINPROGRESS)
		not_connected(link, errno);
}

static void dial_local(struct link *link, const struct card *card)
{
	struct sockaddr_un name;
	socklen_t length = local_name(card, &name);

	link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (link->fd < 0)
		broke(link, errno == EMFILE || errno == ENFILE ? ESP_ELIMIT : ESP_ELINK, "no socket", errno);
	else
		connect_to(link, (struct sockaddr *)&name, length);
}

void link_abandon(struct link *link)
{
	struct linger at_once = {.l_onoff = 1};

	/* The other end may take it for proved, and its orderly end for that of the rank: so it is reset. */
	if (link->fd >= 0 && !link->local)
		(void)setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
}

void link_dial(struct link *link, const struct link_ways *ways)
{
	const struct card *card = &ways->roster->cards[link->peer];
	struct sockaddr_storage name;
	struct route route;
	const char *what;

	if (link->local) {
		dial_local(link, card);
		return;
	}
	if (link->purpose == HELLO_PROBE)
		link->attempts = 0; /* one way only */
	link->began_ns = clock_now_ns();
	link->connect_ns = link->began_ns + (link->rotates ? ways->hurry_ns * (1 + link->attempts / ways->rails->count) : CONNECT_PATIENCE);
	uint32_t attempt = link->rotates ? 0 : link->attempts;
	link->attempts++;
	link->is_reported = false;
	if (!route_find(ways->rails, ways->roster, ways->own, ways->self, link->peer, link->rail, attempt, &route)) {
		broke(link, ESP_ELINK, "the rank has no address", 0);
		return;
	}
	route_text(&route, card->port, ways->own, link->way);
	bool is_here = ways->roster->host_of[ways->self] == ways->roster->host_of[link->peer];
	link->fd = open_for(&route, ways->segment_bytes == 0 && is_here ? SEGMENT_WITHIN_HOST : ways->segment_bytes, &what);
	if (link->fd < 0) {
		broke(link, errno == EMFILE || errno == ENFILE ? ESP_ELIMIT : ESP_ELINK, what, errno);
		return;
	}
	connect_to(link, (struct sockaddr *)&name, card_address_to(&route.to, card->port, route.scope, &name));
}

void link_pin(struct link *link, const struct interfaces *own)
{
	struct sockaddr_storage here = {0}, there = {0};
	socklen_t here_bytes = sizeof(here), there_bytes = sizeof(there);
	struct card_address from, to;

	if (getsockname(link->fd, (struct sockaddr *)&here, &here_bytes) != 0 ||
	    getpeername(link->fd, (struct sockaddr *)&there, &there_bytes) != 0 ||
	    !card_address_from((struct sockaddr *)&here, &from) || !card_address_from((struct sockaddr *)&there, &to))
		return;
	const struct interface *interface = interfaces_find(own, &from);
	if (interface && card_address_same_network(&interface->address, &to))
		(void)setsockopt(link->fd, SOL_SOCKET, SO_BINDTODEVICE, interface->name, (socklen_t)strlen(interface->name));
}

uint32_t link_rail(const struct link *link, const struct link_ways *ways)
{
	struct sockaddr_storage here = {0};
	socklen_t bytes = sizeof(here);
	struct card_address own;

	if (getsockname(link->fd, (struct sockaddr *)&here, &bytes) != 0 || !card_address_from((struct sockaddr *)&here, &own))
		return ROUTE_ANY;
	for (uint32_t rail = 0; rail < ways->rails->count; rail++) {
		if (card_address_same(rails_address(ways->rails, ways->roster, ways->self, rail), &own))
			return rail;
	}
	return ROUTE_ANY;
}

void link_keep_pace(int fd, bool on)
{
	int value = on;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &value, sizeof(value));
	value = on ? PACE_MS : 120000; /* the kernel's own limit. One before 6.15 does not know this */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &value, sizeof(value));
}

void link_prepare(int fd)
{
	int one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	link_keep_pace(fd, true);
}

void link_greet(struct link *link, const struct handshake_config *config)
{
	if (link->dialled && !link->local) /* what was accepted has it from its port, or when it has proved itself; a Unix socket needs none of it */
		link_prepare(link->fd);
	handshake_init(&link->handshake, link->dialled ? HANDSHAKE_DIALER : HANDSHAKE_LISTENER, config);
	link->state = LINK_SHAKING;
}

void link_connected(struct link *link, const struct handshake_config *config)
{
	int error = 0;
	socklen_t length = sizeof(error);

	if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
		error = errno;
	if (!error && address_meets_itself(link->fd))
		error = ECONNREFUSED;
	if (error) {
		not_connected(link, error);
	} else {
		link->refusals = 0;
		link->attempts -= link->is_check; /* the way is right: one that ends just now may still have listened, and is asked again there */
		link_greet(link, config);
	}
}

/* ---- proof ---- */

/* ESP_OK: all has left. */
static enum esp_status send_handshake(struct link *link)
{
	for (;;) {
		const uint8_t *bytes;
		size_t n;

		handshake_output(&link->handshake, &bytes, &n);
		if (n == 0)
			return ESP_OK;
		ssize_t sent = send(link->fd, bytes, n, MSG_NOSIGNAL);
		if (sent >= 0)
			handshake_sent(&link->handshake, (size_t)sent);
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			return ESP_PENDING;
		else if (errno != EINTR)
			return ESP_ELINK;
	}
}

static void note_far_end(struct link *link)
{
	struct sockaddr_storage there = {0};
	socklen_t bytes = sizeof(there);

	if (getpeername(link->fd, (struct sockaddr *)&there, &bytes) == 0)
		(void)card_address_from((struct sockaddr *)&there, &link->far);
}

static void proved(struct link *link)
{
	const struct hello *said = link->dialled ? &link->handshake.config.hello : &link->handshake.peer;

	link->purpose = said->purpose;
	link->lane = said->lane;
	if (!link->dialled)
		link->peer = link->handshake.peer.from;
	link->is_unfit = link->purpose == HELLO_DOOR && judge_is_unfit(&link->handshake.peer, &link->handshake.config.hello);
	if (link->purpose == HELLO_LANE || link->purpose == HELLO_AGAIN || link->purpose == HELLO_PROBE)
		link->state = LINK_DONE;
	else if (link->purpose == HELLO_SHELF)
		link->state = LINK_HANDING;
	else
		link->state = link->purpose == HELLO_DOOR ? LINK_DOOR : LINK_OPEN;
	if (link->state == LINK_OPEN && !link->local)
		note_far_end(link);
	if (link->state == LINK_DONE && !link->local)
		link_keep_pace(link->fd, false); /* what carries data slows down where others do */
}

bool link_shake(struct link *link)
{
	uint8_t bytes[PROOF_BYTES];
	size_t used;
	enum esp_status sent = send_handshake(link);

	if (sent == ESP_ELINK)
		return broke(link, ESP_ELINK, "the connection was closed during the handshake", errno);
	if (sent == ESP_PENDING)
		return false;
	if (link->handshake.state == HANDSHAKE_DONE) {
		proved(link);
		return true;
	}
	if (link->handshake.state == HANDSHAKE_FAILED) {
		link->state = LINK_BROKEN;
		return false;
	}
	/* Not a byte more than the handshake needs: what follows is for somebody else. */
	size_t wanted = handshake_wants(&link->handshake);
	ssize_t got = recv(link->fd, bytes, wanted < sizeof(bytes) ? wanted : sizeof(bytes), 0);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return false;
	if (got < 0 && errno == EINTR)
		return true;
	if (got <= 0) {
		handshake_closed(&link->handshake, &link->err);
		link->state = LINK_BROKEN;
		return false;
	}
	enum esp_status status = handshake_input(&link->handshake, bytes, (size_t)got, &used, &link->err);
	if (status == ESP_ECORRUPT) {
		link->state = LINK_BROKEN;
		return false;
	}
	return true;
}

/* May it still turn out to be unanswered? */
static bool awaits_answer(const struct link *link)
{
	return link->dialled && !link->local && !link->is_reported && (link->state == LINK_CONNECTING || link->state == LINK_SHAKING);
}

bool link_is_unanswered(const struct link *link, uint64_t now_ns)
{
	return awaits_answer(link) && now_ns >= link->began_ns + UNANSWERED;
}

uint64_t link_due(const struct link *link, const struct link_ways *ways)
{
	bool has_other_ways = link->dialled && !link->local && ways->roster->cards[link->peer].address_count > 1;
	uint64_t due = link->state < LINK_OPEN ? link->deadline_ns : UINT64_MAX;

	if (link->state == LINK_WAITING)
		return link->retry_ns;
	if (link->state == LINK_DOOR && link->retry_ns > 0)
		return link->retry_ns;
	/* A rail may die before its end is proved as well. To a check it is enough that a kernel answers. */
	bool is_in_a_hurry = has_other_ways &&
	                     (link->state == LINK_CONNECTING || (link->state == LINK_SHAKING && link->rotates && !link->is_check));
	if (is_in_a_hurry && link->connect_ns < due)
		due = link->connect_ns;
	if (link->state == LINK_HANDING && link->retry_ns > 0 && link->retry_ns < due)
		due = link->retry_ns;
	if (awaits_answer(link) && link->began_ns + UNANSWERED < due)
		due = link->began_ns + UNANSWERED;
	return due;
}

bool link_has_news(struct link *link, const struct link_ways *ways, uint64_t now_ns)
{
	struct pollfd look = {.fd = link->fd, .events = link->state == LINK_CONNECTING ? POLLOUT : POLLIN};
	bool is_dialled = link->dialled && (link->state == LINK_CONNECTING || link->state == LINK_SHAKING);

	if (!is_dialled || (link->state == LINK_SHAKING && link_wants_to_write(link)) || poll(&look, 1, 0) <= 0)
		return false;
	link->connect_ns = now_ns + ways->hurry_ns;
	return true;
}

void link_broke(struct link *link, const struct error *why)
{
	link->state = LINK_BROKEN;
	link->err = *why;
}

void link_late(struct link *link)
{
	broke(link, ESP_ETIMEOUT, link->way[0] ? "no answer" : "it does not answer", 0);
}

/* ---- messages ---- */

bool link_receive_bytes(struct link *link, uint32_t count, const uint8_t **out)
{
	if (!link->in)
		link->in = malloc(IN_MOST * CONTROL_BYTES);
	if (!link->in)
		return broke(link, ESP_ENOMEM, "no memory for its messages", 0);
	while (link->in_bytes - link->in_at < count) {
		memmove(link->in, link->in + link->in_at, link->in_bytes - link->in_at);
		link->in_bytes -= link->in_at;
		link->in_at = 0;
		ssize_t got = recv(link->fd, link->in + link->in_bytes, IN_MOST * CONTROL_BYTES - link->in_bytes, 0);

		if (got > 0)
			link->in_bytes += (uint32_t)got;
		else if (got < 0 && errno == EINTR)
			continue;
		else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return false;
		else if (got == 0)
			return broke(link, ESP_EPEER, "its connection was closed", 0);
		else
			return broke(link, errno == ECONNRESET ? ESP_EPEER : ESP_ELINK, "its connection broke", errno);
	}
	*out = link->in + link->in_at;
	link->in_at += count;
	return true;
}

bool link_receive(struct link *link, struct control_msg *out)
{
	const uint8_t *bytes = NULL;

	if (!link_receive_bytes(link, CONTROL_BYTES, &bytes))
		return false;
	if (!control_decode(bytes, out))
		return broke(link, ESP_ECORRUPT, "it sent a control message that is none", 0);
	return true;
}

void link_silent(struct link *link)
{
	broke(link, ESP_ETIMEOUT, "it does not answer", 0);
}

void link_overflows(struct link *link)
{
	broke(link, ESP_ELIMIT, "it does not read its control messages", 0);
}

void link_nonsense(struct link *link)
{
	broke(link, ESP_ECORRUPT, "it sent control messages that do not follow each other", 0);
}

void link_queue(struct link *link, const struct control_msg *msg)
{
	if (link->out_at > 0 && (link->out_at > link->out_capacity / 2 || link->out_at == link->out_bytes)) {
		memmove(link->out, link->out + link->out_at, link->out_bytes - link->out_at);
		link->out_bytes -= link->out_at;
		link->out_at = 0;
	}
	if (link->out_bytes + CONTROL_BYTES > link->out_capacity) {
		size_t capacity = link->out_capacity ? 2 * link->out_capacity : 4 * CONTROL_BYTES;
		uint8_t *out = capacity > OUT_MOST ? NULL : realloc(link->out, capacity);

		if (!out) {
			link_overflows(link);
			return;
		}
		link->out = out;
		link->out_capacity = capacity;
	}
	control_encode(msg, link->out + link->out_bytes);
	link->out_bytes += CONTROL_BYTES;
}

void link_look_at_door(struct link *link)
{
	char byte;
	ssize_t got = recv(link->fd, &byte, 1, 0);

	if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)))
		return; /* what it says all the same is not listened to */
	broke(link, ESP_EPEER, "its connection was closed", 0);
}

void link_flush(struct link *link)
{
	while ((link->state == LINK_OPEN || link->state == LINK_DOOR) && link->out_at < link->out_bytes) {
		ssize_t sent = send(link->fd, link->out + link->out_at, link->out_bytes - link->out_at, MSG_NOSIGNAL);

		if (sent > 0)
			link->out_at += (size_t)sent;
		else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		else if (sent < 0 && errno == EINTR)
			continue;
		else if (sent < 0 && (errno == ETIMEDOUT || errno == EHOSTUNREACH || errno == ENETUNREACH || errno == ENETDOWN))
			broke(link, ESP_ELINK, "its connection broke", errno);
		else
			link->out_at = link->out_bytes; /* nobody reads it; reading tells what happened, after what came before */
	}
}

bool link_wants_to_write(const struct link *link)
{
	const uint8_t *bytes;
	size_t n = 0;

	switch (link->state) {
	case LINK_CONNECTING:
		return true;
	case LINK_SHAKING:
		handshake_output(&link->handshake, &bytes, &n);
		return n > 0;
	case LINK_HANDING:
		return link->wants_room;
	case LINK_OPEN:
	case LINK_DOOR:
		return link->out_at < link->out_bytes;
	default:
		return false;
	}
}

uint64_t link_last_sign(const struct link *link, uint64_t now_ns)
{
	struct tcp_stats stats = {0};
	int unread = 0;

	if (ioctl(link->fd, FIONREAD, &unread) == 0 && unread > 0)
		return now_ns;
	tcp_path(link->fd, &stats);
	uint64_t ago_ns = stats.last_data_ms * NS_PER_MS;
	return stats.has_path && ago_ns < now_ns ? now_ns - ago_ns : 0;
}
