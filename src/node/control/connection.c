#include "node/control/connection.h"

#include <assert.h>
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
#include "base/vec.h"
#include "node/auth/handshake_check.h"
#include "node/control/local_socket.h"
#include "node/net/address.h"
#include "wire/frame.h"

#define UNANSWERED (250 * NS_PER_MS) /* then peers announce the dialling rank: its kernel retries after a second */
#define CONNECT_PATIENCE (3 * NS_PER_S) /* for a kernel to answer at one address, if there are more */
#define PACE_MS 1000 /* the least that the kernel accepts */
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* of Linux; the C library's header may not have it yet */
#endif
#define IN_MOST 16u /* messages that are received at a time: when all ranks leave there are thousands */
/* With more than this queued for one peer, the peer does not read, and is considered dead. */
#define OUT_MOST (131072u * CONTROL_BYTES)

struct connection *connection_new(void)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	if (connection)
		connection->fd = connection->watched.fd = -1;
	return connection;
}

#define MOVE(state) (1u << CONNECTION_##state)
static const uint8_t moves[] = {
	[CONNECTION_WAITING] = MOVE(CONNECTING) | MOVE(BROKEN) | MOVE(SHAKING), /* SHAKING: it was accepted */
	[CONNECTION_CONNECTING] = MOVE(SHAKING) | MOVE(BROKEN),
	[CONNECTION_SHAKING] = MOVE(HANDING) | MOVE(OPEN) | MOVE(JOINER) | MOVE(DONE) | MOVE(BROKEN),
	[CONNECTION_HANDING] = MOVE(DONE) | MOVE(BROKEN),
	[CONNECTION_OPEN] = MOVE(BROKEN),
	[CONNECTION_JOINER] = MOVE(BROKEN),
	[CONNECTION_DONE] = MOVE(BROKEN),
	[CONNECTION_BROKEN] = MOVE(WAITING) | MOVE(BROKEN), /* WAITING: it is dialled again */
};

void connection_enter(struct connection *connection, enum connection_state state)
{
	assert(moves[connection->state] & 1u << state);
	connection->state = (uint8_t)state;
}

void connection_free(struct connection *connection)
{
	if (!connection)
		return;
	if (connection->fd >= 0)
		close(connection->fd);
	handshake_fini(&connection->handshake);
	free(connection->buffer.in);
	free(connection->buffer.out);
	free(connection);
}

/*
 * Breaks the connection; returns false. err has `what`, where to if it is being dialled, and the error number: "cannot
 * connect to 10.0.0.2 port 4711 through eth1: No route to host".
 */
static bool broke(struct connection *connection, enum esp_status status, const char *what, int error)
{
	bool has_way = connection->dial.way[0] && connection->handshake.state != HANDSHAKE_DONE;

	connection_enter(connection, CONNECTION_BROKEN);
	error_set(&connection->err, status, "%s%s%s%s%s", what, has_way ? " to " : "", has_way ? connection->dial.way : "",
	          error ? ": " : "", error ? strerror(error) : "");
	return false;
}

/* ---- dialling ---- */

static void not_connected(struct connection *connection, int why)
{
	connection->dial.refusals = why == ECONNREFUSED ? connection->dial.refusals + 1 : 0;
	broke(connection, ESP_ELINK, "cannot connect", why);
}

/*
 * TCP should cut its stream into multiples of FRAME_STEP, as are all writes: the kernel leaves the last few bytes of a
 * page unused where a packet ends just before them, and from there on every copy is misaligned (wire/frame.h). That
 * matters with packets as large as the loopback's: two of these segments make the largest packet that it carries.
 * Twelve bytes of each are TCP's timestamps; without timestamps this does not help.
 */
#define SEGMENT_WITHIN_HOST (1016u * FRAME_STEP + 12)

/* A socket for the attempt's way, bound to the own end of it. -1: errno says why, *out_what at what. */
static int open_for(const struct route *route, uint32_t segment_bytes, const char **out_what)
{
	struct sockaddr_storage source;
	int on = 1, segment = (int)segment_bytes;
	int fd = socket(route->to.family == NODE_IPV4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

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
	/* Local ports are then limited per pair of ends, not per host. */
	(void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	socklen_t length = node_address_to(&route->source, 0, route->scope, &source);
	if (bind(fd, (struct sockaddr *)&source, length) == 0)
		return fd;
	int why = errno;
	close(fd);
	errno = why;
	return -1;
}

static void connect_to(struct connection *connection, const struct sockaddr *name, socklen_t length)
{
	connection_enter(connection, CONNECTION_CONNECTING);
	/* EAGAIN: the backlog of a Unix socket is full. */
	if (connect(connection->fd, name, length) != 0 && errno != EINPROGRESS)
		not_connected(connection, errno);
}

static void dial_local(struct connection *connection, const struct node_info *info)
{
	struct sockaddr_un name;
	socklen_t length = local_socket_name(info, &name);

	connection->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connection->fd < 0)
		broke(connection, errno == EMFILE || errno == ENFILE ? ESP_ELIMIT : ESP_ELINK, "no socket", errno);
	else
		connect_to(connection, (struct sockaddr *)&name, length);
}

void connection_abandon(struct connection *connection)
{
	struct linger at_once = {.l_onoff = 1};

		/* The other end may take it for proved, and an orderly close for the end of the rank: so it is reset. */
	if (connection->fd >= 0 && !connection->local)
		(void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	if (connection->fd >= 0)
		close(connection->fd);
	connection->fd = -1;
}

void connection_dial(struct connection *connection, const struct connection_ways *ways)
{
	const struct node_info *info = &ways->roster->nodes[connection->peer];
	struct sockaddr_storage name;
	struct route route;
	const char *what;

	if (connection->local) {
		dial_local(connection, info);
		return;
	}
	if (connection->purpose == HELLO_PROBE)
		connection->dial.attempts = 0; /* one way only */
	connection->dial.began_ns = clock_now_ns();
	connection->dial.connect_ns =
		connection->dial.began_ns + (connection->dial.rotates
	                                     ? ways->hurry_ns * (1 + connection->dial.attempts / ways->rails->count)
	                                     : CONNECT_PATIENCE);
	uint32_t attempt = connection->dial.rotates ? 0 : connection->dial.attempts;
	connection->dial.attempts++;
	connection->dial.is_reported = false;
	if (!route_find(ways->rails, ways->roster, ways->own, ways->self, connection->peer, connection->dial.rail, attempt,
	                &route)) {
		broke(connection, ESP_ELINK, "the rank has no address", 0);
		return;
	}
	route_text(&route, info->port, ways->own, connection->dial.way);
	bool is_here = ways->roster->host_of[ways->self] == ways->roster->host_of[connection->peer];
	connection->fd =
		open_for(&route, ways->segment_bytes == 0 && is_here ? SEGMENT_WITHIN_HOST : ways->segment_bytes, &what);
	if (connection->fd < 0) {
		broke(connection, errno == EMFILE || errno == ENFILE ? ESP_ELIMIT : ESP_ELINK, what, errno);
		return;
	}
	connect_to(connection, (struct sockaddr *)&name, node_address_to(&route.to, info->port, route.scope, &name));
}

void connection_pin(struct connection *connection, const struct interfaces *own)
{
	struct sockaddr_storage here = {0}, there = {0};
	socklen_t here_bytes = sizeof(here), there_bytes = sizeof(there);
	struct node_address from, to;

	if (getsockname(connection->fd, (struct sockaddr *)&here, &here_bytes) != 0 ||
	    getpeername(connection->fd, (struct sockaddr *)&there, &there_bytes) != 0 ||
	    !node_address_from((struct sockaddr *)&here, &from) || !node_address_from((struct sockaddr *)&there, &to))
		return;
	const struct interface *interface = interfaces_find(own, &from);
	if (interface && node_address_same_network(&interface->address, &to))
		(void)setsockopt(connection->fd, SOL_SOCKET, SO_BINDTODEVICE, interface->name,
		                 (socklen_t)strlen(interface->name));
}

uint32_t connection_rail(const struct connection *connection, const struct connection_ways *ways)
{
	struct sockaddr_storage here = {0};
	socklen_t bytes = sizeof(here);
	struct node_address own;

	if (getsockname(connection->fd, (struct sockaddr *)&here, &bytes) != 0 ||
	    !node_address_from((struct sockaddr *)&here, &own))
		return ROUTE_ANY;
	for (uint32_t rail = 0; rail < ways->rails->count; rail++) {
		if (node_address_same(rails_address(ways->rails, ways->roster, ways->self, rail), &own))
			return rail;
	}
	return ROUTE_ANY;
}

void connection_keep_pace(int fd, bool on)
{
	int value = on;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &value, sizeof(value));
	value = on ? PACE_MS : 120000; /* the kernel's own limit. One before 6.15 does not know this */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &value, sizeof(value));
}

void connection_prepare(int fd)
{
	int one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	connection_keep_pace(fd, true);
}

void connection_greet(struct connection *connection, const struct handshake_config *config)
{
	/* An accepted one has the options from its port, or gets them once it is proved; a Unix socket needs none. */
	if (connection->dialled && !connection->local)
		connection_prepare(connection->fd);
	handshake_init(&connection->handshake, connection->dialled ? HANDSHAKE_DIALER : HANDSHAKE_LISTENER, config);
	connection_enter(connection, CONNECTION_SHAKING);
}

void connection_connected(struct connection *connection, const struct handshake_config *config)
{
	int error = 0;
	socklen_t length = sizeof(error);

	if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
		error = errno;
	if (!error && address_meets_itself(connection->fd))
		error = ECONNREFUSED;
	if (error) {
		not_connected(connection, error);
	} else {
		connection->dial.refusals = 0;
		/* The address is right: a process that is ending may still have listened there, and is asked there again. */
		connection->dial.attempts -= connection->dial.is_check;
		connection_greet(connection, config);
	}
}

/* ---- proof ---- */

/* ESP_OK: everything was sent. */
static enum esp_status send_handshake(struct connection *connection)
{
	for (;;) {
		const uint8_t *bytes;
		size_t n;

		handshake_output(&connection->handshake, &bytes, &n);
		if (n == 0)
			return ESP_OK;
		ssize_t sent = send(connection->fd, bytes, n, MSG_NOSIGNAL);
		if (sent >= 0)
			handshake_sent(&connection->handshake, (size_t)sent);
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			return ESP_PENDING;
		else if (errno != EINTR)
			return ESP_ELINK;
	}
}

static void note_far_end(struct connection *connection)
{
	struct sockaddr_storage there = {0};
	socklen_t bytes = sizeof(there);

	if (getpeername(connection->fd, (struct sockaddr *)&there, &bytes) == 0)
		(void)node_address_from((struct sockaddr *)&there, &connection->far);
}

static void proved(struct connection *connection)
{
	const struct hello *said = connection->dialled ? &connection->handshake.config.hello : &connection->handshake.peer;

	connection->purpose = said->purpose;
	connection->lane = said->lane;
	if (!connection->dialled)
		connection->peer = connection->handshake.peer.from;
	connection->joiner.is_unfit = connection->purpose == HELLO_JOINER &&
	                              judge_is_unfit(&connection->handshake.peer, &connection->handshake.config.hello);
	if (connection->purpose == HELLO_LANE || connection->purpose == HELLO_AGAIN || connection->purpose == HELLO_PROBE)
		connection_enter(connection, CONNECTION_DONE);
	else if (connection->purpose == HELLO_FDS)
		connection_enter(connection, CONNECTION_HANDING);
	else
		connection_enter(connection, connection->purpose == HELLO_JOINER ? CONNECTION_JOINER : CONNECTION_OPEN);
	if (connection->state == CONNECTION_OPEN && !connection->local)
		note_far_end(connection);
	if (connection->state == CONNECTION_DONE && !connection->local)
		connection_keep_pace(connection->fd, false); /* a data connection backs off as other traffic does */
}

bool connection_shake(struct connection *connection)
{
	uint8_t bytes[PROOF_BYTES];
	size_t used;
	enum esp_status sent = send_handshake(connection);

	if (sent == ESP_ELINK)
		return broke(connection, ESP_ELINK, "the connection was closed during the handshake", errno);
	if (sent == ESP_PENDING)
		return false;
	if (connection->handshake.state == HANDSHAKE_DONE) {
		proved(connection);
		return true;
	}
	if (connection->handshake.state == HANDSHAKE_FAILED) {
		connection_enter(connection, CONNECTION_BROKEN);
		return false;
	}
	/* Reads no byte beyond the handshake: the bytes that follow are for the connection's next owner. */
	size_t wanted = handshake_wants(&connection->handshake);
	ssize_t got = recv(connection->fd, bytes, wanted < sizeof(bytes) ? wanted : sizeof(bytes), 0);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return false;
	if (got < 0 && errno == EINTR)
		return true;
	if (got <= 0) {
		handshake_closed(&connection->handshake, &connection->err);
		connection_enter(connection, CONNECTION_BROKEN);
		return false;
	}
	enum esp_status status = handshake_input(&connection->handshake, bytes, (size_t)got, &used, &connection->err);
	if (status == ESP_ECORRUPT) {
		connection_enter(connection, CONNECTION_BROKEN);
		return false;
	}
	return true;
}

/* True if the attempt may still be reported as unanswered. */
static bool awaits_answer(const struct connection *connection)
{
	return connection->dialled && !connection->local && !connection->dial.is_reported &&
	       (connection->state == CONNECTION_CONNECTING || connection->state == CONNECTION_SHAKING);
}

bool connection_is_unanswered(const struct connection *connection, uint64_t now_ns)
{
	return awaits_answer(connection) && now_ns >= connection->dial.began_ns + UNANSWERED;
}

uint64_t connection_due(const struct connection *connection, const struct connection_ways *ways)
{
	bool has_other_ways =
		connection->dialled && !connection->local && ways->roster->nodes[connection->peer].address_count > 1;
	uint64_t due = connection->state < CONNECTION_OPEN ? connection->deadline_ns : UINT64_MAX;

	if (connection->state == CONNECTION_WAITING)
		return connection->retry_ns;
	if (connection->state == CONNECTION_JOINER && connection->retry_ns > 0)
		return connection->retry_ns;
	/* A rail may also fail between connect() and proof. For a check an answer of the kernel is enough. */
	bool is_in_a_hurry =
		has_other_ways &&
		(connection->state == CONNECTION_CONNECTING ||
	     (connection->state == CONNECTION_SHAKING && connection->dial.rotates && !connection->dial.is_check));
	if (is_in_a_hurry && connection->dial.connect_ns < due)
		due = connection->dial.connect_ns;
	if (connection->state == CONNECTION_HANDING && connection->retry_ns > 0 && connection->retry_ns < due)
		due = connection->retry_ns;
	if (awaits_answer(connection) && connection->dial.began_ns + UNANSWERED < due)
		due = connection->dial.began_ns + UNANSWERED;
	return due;
}

bool connection_was_answered(struct connection *connection, const struct connection_ways *ways, uint64_t now_ns)
{
	struct pollfd look = {.fd = connection->fd,
	                      .events = connection->state == CONNECTION_CONNECTING ? POLLOUT : POLLIN};
	bool is_dialled =
		connection->dialled && (connection->state == CONNECTION_CONNECTING || connection->state == CONNECTION_SHAKING);

	if (!is_dialled || (connection->state == CONNECTION_SHAKING && connection_wants_to_write(connection)) ||
	    poll(&look, 1, 0) <= 0)
		return false;
	connection->dial.connect_ns = now_ns + ways->hurry_ns;
	return true;
}

void connection_broke(struct connection *connection, const struct error *why)
{
	connection_enter(connection, CONNECTION_BROKEN);
	connection->err = *why;
}

void connection_late(struct connection *connection)
{
	broke(connection, ESP_ETIMEOUT, connection->dial.way[0] ? "no answer" : "it does not answer", 0);
}

/* ---- messages ---- */

bool connection_receive_bytes(struct connection *connection, uint32_t count, const uint8_t **out)
{
	if (!connection->buffer.in)
		connection->buffer.in = malloc(IN_MOST * CONTROL_BYTES);
	if (!connection->buffer.in)
		return broke(connection, ESP_ENOMEM, "no memory for its messages", 0);
	while (connection->buffer.in_bytes - connection->buffer.in_at < count) {
		memmove(connection->buffer.in, connection->buffer.in + connection->buffer.in_at,
		        connection->buffer.in_bytes - connection->buffer.in_at);
		connection->buffer.in_bytes -= connection->buffer.in_at;
		connection->buffer.in_at = 0;
		ssize_t got = recv(connection->fd, connection->buffer.in + connection->buffer.in_bytes,
		                   IN_MOST * CONTROL_BYTES - connection->buffer.in_bytes, 0);

		if (got > 0)
			connection->buffer.in_bytes += (uint32_t)got;
		else if (got < 0 && errno == EINTR)
			continue;
		else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return false;
		else if (got == 0)
			return broke(connection, ESP_EPEER, "its connection was closed", 0);
		else
			return broke(connection, errno == ECONNRESET ? ESP_EPEER : ESP_ELINK, "its connection broke", errno);
	}
	*out = connection->buffer.in + connection->buffer.in_at;
	connection->buffer.in_at += count;
	return true;
}

bool connection_receive(struct connection *connection, struct control_msg *out)
{
	const uint8_t *bytes = NULL;

	if (!connection_receive_bytes(connection, CONTROL_BYTES, &bytes))
		return false;
	if (!control_decode(bytes, out))
		return broke(connection, ESP_ECORRUPT, "it sent a control message that is none", 0);
	return true;
}

void connection_silent(struct connection *connection)
{
	broke(connection, ESP_ETIMEOUT, "it does not answer", 0);
}

void connection_overflows(struct connection *connection)
{
	broke(connection, ESP_ELIMIT, "it does not read its control messages", 0);
}

void connection_nonsense(struct connection *connection)
{
	broke(connection, ESP_ECORRUPT, "it sent control messages that do not follow each other", 0);
}

void connection_queue(struct connection *connection, const struct control_msg *msg)
{
	if (connection->buffer.out_at > 0 && (connection->buffer.out_at > connection->buffer.out_capacity / 2 ||
	                                      connection->buffer.out_at == connection->buffer.out_bytes)) {
		memmove(connection->buffer.out, connection->buffer.out + connection->buffer.out_at,
		        connection->buffer.out_bytes - connection->buffer.out_at);
		connection->buffer.out_bytes -= connection->buffer.out_at;
		connection->buffer.out_at = 0;
	}
	size_t needed = connection->buffer.out_bytes + CONTROL_BYTES;
	if (needed > OUT_MOST || !vec_reserve(&connection->buffer.out, &connection->buffer.out_capacity, needed, 1)) {
		connection_overflows(connection);
		return;
	}
	control_encode(msg, connection->buffer.out + connection->buffer.out_bytes);
	connection->buffer.out_bytes += CONTROL_BYTES;
}

void connection_check_closed(struct connection *connection)
{
	char byte;
	ssize_t got = recv(connection->fd, &byte, 1, 0);

	if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)))
		return; /* a byte that was sent nevertheless is ignored */
	broke(connection, ESP_EPEER, "its connection was closed", 0);
}

void connection_flush(struct connection *connection)
{
	while ((connection->state == CONNECTION_OPEN || connection->state == CONNECTION_JOINER) &&
	       connection->buffer.out_at < connection->buffer.out_bytes) {
		ssize_t sent = send(connection->fd, connection->buffer.out + connection->buffer.out_at,
		                    connection->buffer.out_bytes - connection->buffer.out_at, MSG_NOSIGNAL);

		if (sent > 0)
			connection->buffer.out_at += (size_t)sent;
		else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		else if (sent < 0 && errno == EINTR)
			continue;
		else if (sent < 0 && (errno == ETIMEDOUT || errno == EHOSTUNREACH || errno == ENETUNREACH || errno == ENETDOWN))
			broke(connection, ESP_ELINK, "its connection broke", errno);
		else /* the peer reads no more; recv() reports why, after the bytes that came before */
			connection->buffer.out_at = connection->buffer.out_bytes;
	}
}

bool connection_wants_to_write(const struct connection *connection)
{
	const uint8_t *bytes;
	size_t n = 0;

	switch (connection->state) {
	case CONNECTION_CONNECTING:
		return true;
	case CONNECTION_SHAKING:
		handshake_output(&connection->handshake, &bytes, &n);
		return n > 0;
	case CONNECTION_HANDING:
		return connection->fds.wants_room;
	case CONNECTION_OPEN:
	case CONNECTION_JOINER:
		return connection->buffer.out_at < connection->buffer.out_bytes;
	default:
		return false;
	}
}

uint64_t connection_last_sign(const struct connection *connection, uint64_t now_ns)
{
	struct path_stats stats = {0};
	int unread = 0;

	if (ioctl(connection->fd, FIONREAD, &unread) == 0 && unread > 0)
		return now_ns;
	path_read(connection->fd, &stats);
	uint64_t ago_ns = stats.last_data_ms * NS_PER_MS;
	return stats.has_path && ago_ns < now_ns ? now_ns - ago_ns : 0;
}
