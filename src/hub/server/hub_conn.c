#include "hub/server/hub_conn.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "hub/control/hub_dial.h"
#include "wire/bytes.h"

#define UNPROVED_MOST 256u
#define SPARE_CONNS 16u /* control connections of a job beyond two for each worker: a new run may meet the former one */
#define PROOF_PATIENCE (5 * NS_PER_S)
#define ENDING_PATIENCE (5 * NS_PER_S)
#define JOIN_PATIENCE (10 * NS_PER_S)
#define ALIVE_IDLE 15  /* seconds without a byte, until the kernel asks the other host */
#define ALIVE_PAUSE 5  /* between two questions */
#define ALIVE_MOST 30  /* without an answer: the connection has ended */

/* By state: the states that may follow. */
static const uint8_t moves[HUB_CONN_STATES] = {
	[HUB_CONN_PROVING] = 1u << HUB_CONN_OPERATOR | 1u << HUB_CONN_WORKER | 1u << HUB_CONN_DEAD,
	[HUB_CONN_OPERATOR] = 1u << HUB_CONN_ENDING | 1u << HUB_CONN_DEAD,
	[HUB_CONN_WORKER] = 1u << HUB_CONN_ENDING | 1u << HUB_CONN_DEAD,
	[HUB_CONN_ENDING] = 1u << HUB_CONN_DEAD,
};

static void enter(struct hub_conn *conn, enum hub_conn_state state)
{
	assert(moves[conn->state] & 1u << state);
	if (conn->state == HUB_CONN_PROVING)
		conn->hub->unproved--;
	conn->state = (uint8_t)state;
	conn->since_ns = loop_now(&conn->hub->loop);
	hub_conn_heard(conn);
}

void hub_conn_heard(struct hub_conn *conn)
{
	silence_heard(&conn->silence, loop_now(&conn->hub->loop));
}

/* ---- the end ---- */

static void free_handshake(struct hub_conn *conn)
{
	if (conn->hs)
		handshake_fini(conn->hs);
	free(conn->hs);
	conn->hs = NULL;
}

static void free_conn(struct hub_conn *conn)
{
	free_handshake(conn);
	if (conn->stream)
		msg_stream_fini(conn->stream);
	free(conn->stream);
	free(conn);
}

/* Closes the descriptor unless it was given to a lane. */
static void die(struct hub_conn *conn)
{
	int fd = conn->watched.fd;

	assert(!conn->session);
	loop_remove(&conn->hub->loop, &conn->watched);
	if (fd >= 0)
		close(fd);
	conn->watched.fd = -1;
	enter(conn, HUB_CONN_DEAD);
}

void hub_conn_lose(struct hub_conn *conn, const char *why)
{
	if (conn->state == HUB_CONN_DEAD)
		return;
	if (conn->session)
		conn->hub->events->lost(conn, why);
	if (conn->state != HUB_CONN_DEAD)
		die(conn);
}

void hub_conn_free_dead(struct hub *hub)
{
	struct hub_conn **at = &hub->conns;

	while (*at) {
		struct hub_conn *conn = *at;

		if (conn->state != HUB_CONN_DEAD) {
			at = &conn->next;
			continue;
		}
		*at = conn->next;
		free_conn(conn);
	}
}

void hub_conn_close_all(struct hub *hub)
{
	for (struct hub_conn *conn = hub->conns; conn; conn = conn->next) {
		if (conn->state != HUB_CONN_DEAD)
			die(conn);
	}
	hub_conn_free_dead(hub);
}

/* ---- sending ---- */

static void flush(struct hub_conn *conn)
{
	const uint8_t *bytes;
	size_t n;

	while ((n = msg_stream_output(conn->stream, &bytes)) > 0) {
		ssize_t sent = send(conn->watched.fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent > 0) {
			msg_stream_sent(conn->stream, (size_t)sent);
		} else if (errno == EAGAIN) {
			loop_change(&conn->hub->loop, &conn->watched,
			            conn->state == HUB_CONN_ENDING ? EPOLLOUT : EPOLLIN | EPOLLOUT);
			return;
		} else if (errno != EINTR) {
			hub_conn_lose(conn, "has closed its connection");
			return;
		}
	}
	if (conn->state == HUB_CONN_ENDING)
		die(conn);
	else
		loop_change(&conn->hub->loop, &conn->watched, EPOLLIN);
}

static bool is_talking(const struct hub_conn *conn)
{
	return conn->state == HUB_CONN_OPERATOR || conn->state == HUB_CONN_WORKER;
}

void hub_conn_send(struct hub_conn *conn, const struct hub_msg *msg)
{
	if (!is_talking(conn))
		return;
	if (msg_stream_put(conn->stream, msg) == ESP_OK)
		flush(conn);
	else
		hub_conn_lose(conn, "does not take what the hub sends");
}

void hub_conn_end(struct hub_conn *conn)
{
	if (!is_talking(conn))
		return;
	if (conn->session)
		conn->hub->events->lost(conn, "was sent away");
	if (!is_talking(conn))
		return;
	enter(conn, HUB_CONN_ENDING);
	flush(conn);
}

void hub_conn_refuse(struct hub_conn *conn, enum esp_status status, uint32_t worker, const char *text)
{
	struct hub_msg msg = {.type = HUB_MSG_WHY, .why = {.status = status, .worker = worker}};

	assert(status < 0);
	snprintf(msg.why.text, sizeof(msg.why.text), "%s", text);
	hub_conn_send(conn, &msg);
	hub_conn_end(conn);
}

/* ---- messages ---- */

static void take_messages(struct hub_conn *conn)
{
	struct hub_msg msg;

	while (is_talking(conn)) {
		enum esp_status status = msg_stream_take(conn->stream, &msg);

		if (status == ESP_PENDING)
			return;
		if (status != ESP_OK)
			hub_conn_lose(conn, "sent bytes that are no message of a worker");
		else
			conn->hub->events->message(conn, &msg);
	}
}

static void receive(struct hub_conn *conn)
{
	uint8_t *at;
	size_t room = msg_stream_room(conn->stream, &at);
	ssize_t got = recv(conn->watched.fd, at, room, MSG_DONTWAIT);

	if (got > 0) {
		hub_conn_heard(conn);
		msg_stream_arrived(conn->stream, (size_t)got);
		take_messages(conn);
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		hub_conn_lose(conn, "has closed its connection: its process has ended, or was killed");
	}
}

/* ---- the handshake ---- */

static bool find_key(void *context, uint64_t job, uint8_t out_key[HANDSHAKE_KEY_BYTES], struct hello *out_own)
{
	struct hub *hub = context;
	uint32_t workers = HUB_OPERATORS;

	if (job == hub->own_job)
		memcpy(out_key, hub->config.key, HANDSHAKE_KEY_BYTES);
	else if (!hub->events->job(hub, job, out_key, &workers))
		return false;
	hub_dial_listener_hello(workers, out_own);
	return true;
}

/* The proved connection is a lane's; the descriptor is handed over with its options as they are. */
static void give_to_lane(struct hub_conn *conn, uint64_t session, uint32_t lane)
{
	int fd = conn->watched.fd;

	loop_remove(&conn->hub->loop, &conn->watched);
	conn->watched.fd = -1;
	if (!conn->hub->events->lane(conn, session, lane, fd))
		hub_log(conn->hub, "%s: a data connection of worker %u fits no session: closed", conn->peer, conn->worker);
	die(conn);
}

/* A host that has lost power or its network is found by the kernel, also while its worker may be silent. */
static void keep_alive(int fd)
{
	int on = 1, idle = ALIVE_IDLE, pause = ALIVE_PAUSE, most = ALIVE_MOST * 1000;

	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause, sizeof(pause));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most, sizeof(most));
}

static void begin_messages(struct hub_conn *conn, bool is_operator)
{
	struct msg_stream *stream = malloc(sizeof(*stream));

	if (!stream) {
		hub_conn_lose(conn, "");
		return;
	}
	msg_stream_init(stream, conn->hs->session, true);
	conn->stream = stream;
	keep_alive(conn->watched.fd);
	free_handshake(conn);
	enter(conn, is_operator ? HUB_CONN_OPERATOR : HUB_CONN_WORKER);
	loop_change(&conn->hub->loop, &conn->watched, EPOLLIN);
}

/* That may connect with the key that the peer has; 0: the job is no more. */
static uint32_t workers_of(const struct hub_conn *conn)
{
	uint8_t key[HANDSHAKE_KEY_BYTES];
	uint32_t workers = HUB_OPERATORS;

	if (conn->job != conn->hub->own_job && !conn->hub->events->job(conn->hub, conn->job, key, &workers))
		workers = 0;
	sodium_memzero(key, sizeof(key));
	return workers;
}

/* A process with a ticket may open connections that join nothing: they have a quota. */
static void check_quota(struct hub_conn *conn, uint32_t workers)
{
	uint32_t count = 0, most = 2 * workers + SPARE_CONNS;
	char text[HUB_WHY_TEXT];

	for (const struct hub_conn *other = conn->hub->conns; other; other = other->next)
		count += other->state == HUB_CONN_WORKER && other->job == conn->job;
	if (count <= most)
		return;
	conn->hub->refused++;
	snprintf(text, sizeof(text), "the job has %u control connections to the hub, and takes %u at most", count - 1,
	         most);
	hub_conn_refuse(conn, ESP_ELIMIT, UINT32_MAX, text);
}

static void on_proved(struct hub_conn *conn)
{
	struct hello peer = conn->hs->peer;
	uint64_t session = hub_dial_session(&peer);

	accept_limit_proved(&conn->hub->limit);
	conn->job = bytes_get64(conn->hs->proof + PROOF_JOB_AT);
	conn->worker = peer.from;
	bool is_operator = conn->job == conn->hub->own_job;
	uint32_t workers = workers_of(conn);
	if (conn->worker >= workers)
		hub_conn_lose(conn, "");
	else if (peer.purpose == HELLO_CONTROL)
		begin_messages(conn, is_operator);
	else if (!is_operator)
		give_to_lane(conn, session, peer.lane);
	else
		hub_conn_lose(conn, "");
	if (conn->state == HUB_CONN_WORKER)
		check_quota(conn, workers);
}

/* True: all that the handshake has to say has left. */
static bool send_handshake(struct hub_conn *conn)
{
	const uint8_t *bytes;
	size_t n;

	for (;;) {
		handshake_output(conn->hs, &bytes, &n);
		if (n == 0)
			return true;
		ssize_t sent = send(conn->watched.fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent > 0)
			handshake_sent(conn->hs, (size_t)sent);
		else if (errno != EINTR)
			break;
	}
	if (errno == EAGAIN)
		loop_change(&conn->hub->loop, &conn->watched, EPOLLOUT);
	else
		hub_conn_lose(conn, "");
	return false;
}

/* Takes what has come, but no byte behind the handshake. */
static enum esp_status receive_handshake(struct hub_conn *conn, struct error *err)
{
	uint8_t bytes[PROOF_BYTES];
	size_t wanted = handshake_wants(conn->hs), used;

	if (wanted == 0)
		return conn->hs->status;
	ssize_t got = recv(conn->watched.fd, bytes, wanted < sizeof(bytes) ? wanted : sizeof(bytes), MSG_DONTWAIT);
	if (got > 0)
		return handshake_input(conn->hs, bytes, (size_t)got, &used, err);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return ESP_PENDING;
	return handshake_closed(conn->hs, err);
}

static void prove(struct hub_conn *conn)
{
	struct error err = {0};
	enum esp_status status = receive_handshake(conn, &err);

	if (status != ESP_OK && status != ESP_PENDING) {
		conn->hub->refused++;
		/* A peer that has proved itself and does not fit is told so. */
		if (status == ESP_EMISMATCH && !send_handshake(conn))
			return;
		hub_conn_lose(conn, "");
		return;
	}
	if (!send_handshake(conn))
		return;
	if (status == ESP_OK)
		on_proved(conn);
	else
		loop_change(&conn->hub->loop, &conn->watched, EPOLLIN);
}

/* ---- events ---- */

static void on_ready(struct loop_fd *watched, uint32_t events)
{
	struct hub_conn *conn = (struct hub_conn *)(void *)watched;

	if (conn->state == HUB_CONN_PROVING) {
		prove(conn);
		return;
	}
	if (conn->state != HUB_CONN_DEAD && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
		flush(conn);
	if (is_talking(conn) && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		receive(conn);
}

static struct hub_conn *oldest_unproved(const struct hub *hub)
{
	struct hub_conn *oldest = NULL;

	for (struct hub_conn *conn = hub->conns; conn; conn = conn->next) {
		if (conn->state == HUB_CONN_PROVING && (!oldest || conn->since_ns < oldest->since_ns))
			oldest = conn;
	}
	return oldest;
}

static enum esp_status begin_proof(struct hub_conn *conn, int fd)
{
	struct hub *hub = conn->hub;
	const struct handshake_config config = {
		.find = find_key,
		.find_context = hub,
		.purposes = 1u << HELLO_CONTROL | 1u << HELLO_LANE,
		.lanes = hub->config.lanes,
	};
	struct error err;

	conn->hs = malloc(sizeof(*conn->hs));
	if (!conn->hs)
		return ESP_ENOMEM;
	handshake_init(conn->hs, HANDSHAKE_LISTENER, &config);
	conn->watched.ready = on_ready;
	return loop_add(&hub->loop, &conn->watched, fd, EPOLLIN, &err);
}

void hub_conn_accept(struct hub *hub, int fd, bool is_local, const char *peer)
{
	struct hub_conn *conn = calloc(1, sizeof(*conn));

	if (hub->unproved >= UNPROVED_MOST)
		hub_conn_lose(oldest_unproved(hub), "");
	if (!conn) {
		close(fd);
		return;
	}
	conn->hub = hub;
	conn->is_local = is_local;
	conn->since_ns = loop_now(&hub->loop);
	conn->watched.fd = -1;
	snprintf(conn->peer, sizeof(conn->peer), "%s", peer);
	if (begin_proof(conn, fd) != ESP_OK) {
		close(fd);
		free_conn(conn);
		return;
	}
	conn->next = hub->conns;
	hub->conns = conn;
	hub->unproved++;
	prove(conn);
}

/* Bytes that have come while this thread did other work count. */
static void believe_silence(struct hub_conn *conn, uint64_t most_ns)
{
	char why[96];

	receive(conn);
	if (conn->state != HUB_CONN_WORKER || conn->silence.asked_ns == 0)
		return;
	snprintf(why, sizeof(why), "has not been heard for %" PRIu64 " s: it is stopped, or cut off", most_ns / NS_PER_S);
	hub_conn_lose(conn, why);
}

static void look_after_worker(struct hub_conn *conn, uint64_t now)
{
	const struct hub_msg ping = {.type = HUB_MSG_PING};
	uint64_t most = conn->hub->events->patience(conn);
	enum silence_verdict verdict = silence_look(&conn->silence, now, most);

	if (verdict == SILENCE_ASKS)
		hub_conn_send(conn, &ping);
	else if (verdict == SILENCE_DEAD)
		believe_silence(conn, most);
}

static void look_after(struct hub_conn *conn, uint64_t now)
{
	uint64_t since = now - conn->since_ns;

	if ((conn->state == HUB_CONN_PROVING && since > PROOF_PATIENCE) ||
	    (conn->state == HUB_CONN_ENDING && since > ENDING_PATIENCE))
		hub_conn_lose(conn, "");
	else if (conn->state == HUB_CONN_WORKER && !conn->session && since > JOIN_PATIENCE)
		hub_conn_refuse(conn, ESP_ETIMEOUT, UINT32_MAX, "a worker that connects joins its job within 10 s");
	else if (conn->state == HUB_CONN_WORKER)
		look_after_worker(conn, now);
}

void hub_conn_look_after_all(struct hub *hub)
{
	uint64_t now = loop_now(&hub->loop);

	for (struct hub_conn *conn = hub->conns; conn; conn = conn->next)
		look_after(conn, now);
}
