#include "fabric/server/sched_server_conn.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "hub/control/hub_dial.h"
#include "wire/bytes.h"

#define UNPROVED_MOST 256u
#define PROOF_PATIENCE (5 * NS_PER_S)
#define REGISTER_PATIENCE (5 * NS_PER_S)

/* ---- the end ---- */

static void free_handshake(struct sched_server_conn *conn)
{
	if (conn->hs)
		handshake_fini(conn->hs);
	free(conn->hs);
	conn->hs = NULL;
}

static void lose(struct sched_server_conn *conn)
{
	int fd = conn->watched.fd;

	if (conn->state == SCHED_SERVER_CONN_DEAD)
		return;
	if (conn->state == SCHED_SERVER_CONN_PROVING)
		conn->server->unproved--;
	conn->state = SCHED_SERVER_CONN_DEAD;
	loop_remove(&conn->server->loop, &conn->watched);
	close(fd);
	free_handshake(conn);
	if (conn->job)
		sched_server_job_leave(conn);
}

void sched_server_conn_free_dead(struct sched_server *server)
{
	struct sched_server_conn **at = &server->conns;

	while (*at) {
		struct sched_server_conn *conn = *at;

		if (conn->state != SCHED_SERVER_CONN_DEAD) {
			at = &conn->next;
			continue;
		}
		*at = conn->next;
		free(conn);
	}
}

void sched_server_conn_close_all(struct sched_server *server)
{
	for (struct sched_server_conn *conn = server->conns; conn; conn = conn->next)
		lose(conn);
	sched_server_conn_free_dead(server);
}

/* ---- messages ---- */

void sched_server_conn_send(struct sched_server_conn *conn, const struct fabric_msg *msg)
{
	uint8_t bytes[FABRIC_MSG_BYTES];

	if (conn->state == SCHED_SERVER_CONN_DEAD)
		return;
	fabric_msg_encode(msg, bytes);
	if (send(conn->watched.fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof(bytes))
		lose(conn);
}

void sched_server_conn_refuse(struct sched_server_conn *conn, const struct error *err)
{
	struct fabric_msg msg = {.type = FABRIC_REFUSE, .refuse = {.status = err->status}};

	assert(err->status < 0);
	snprintf(msg.refuse.text, sizeof(msg.refuse.text), "%.*s", (int)sizeof(msg.refuse.text) - 1, err->text);
	conn->server->refused++;
	sched_server_conn_send(conn, &msg);
	lose(conn);
}

static void take_msg(struct sched_server_conn *conn, const struct fabric_msg *msg)
{
	struct error err = {0};
	enum esp_status status;

	if (msg->type == FABRIC_REGISTER && conn->state == SCHED_SERVER_CONN_PROVED)
		status = sched_server_job_join(conn->server, conn, &msg->reg, &err);
	else if (msg->type == FABRIC_READY && conn->state == SCHED_SERVER_CONN_REGISTERED)
		status = sched_server_job_ready(conn, &msg->ready, &err);
	else if (msg->type == FABRIC_DONE && conn->state == SCHED_SERVER_CONN_REGISTERED)
		status = sched_server_job_done(conn, &msg->done, &err);
	else if (msg->type == FABRIC_WANT && conn->state == SCHED_SERVER_CONN_REGISTERED)
		status = sched_server_job_want(conn, &msg->want, &err);
	else if (msg->type == FABRIC_GOT && conn->state == SCHED_SERVER_CONN_REGISTERED)
		status = sched_server_job_got(conn, &msg->got, &err);
	else
		status = error_set(&err, ESP_ECORRUPT, "a message came that a worker does not send at this time");
	if (status != ESP_OK)
		sched_server_conn_refuse(conn, &err);
}

static void receive(struct sched_server_conn *conn)
{
	ssize_t got = recv(conn->watched.fd, conn->in + conn->in_bytes, sizeof(conn->in) - conn->in_bytes, MSG_DONTWAIT);
	struct fabric_msg msg;
	struct error err;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		lose(conn);
		return;
	}
	conn->in_bytes += (size_t)got;
	if (conn->in_bytes < sizeof(conn->in))
		return;
	conn->in_bytes = 0;
	if (fabric_msg_decode(conn->in, &msg)) {
		take_msg(conn, &msg);
		return;
	}
	error_set(&err, ESP_ECORRUPT, "bytes came that are no message of a worker");
	sched_server_conn_refuse(conn, &err);
}

/* ---- the handshake ---- */

/* Any number of a job has a key: a process that proves it has a ticket that the hub has made, if perhaps long ago. */
static bool find_key(void *context, uint64_t job, uint8_t out_key[HANDSHAKE_KEY_BYTES], struct hello *out_own)
{
	const struct sched_server *server = context;

	if (job == 0)
		return false;
	hub_dial_job_key(server->config.key, job, out_key);
	hub_dial_scheduler_hello(out_own);
	return true;
}

static void on_proved(struct sched_server_conn *conn)
{
	struct sched_server *server = conn->server;

	accept_limit_proved(&server->limit);
	server->unproved--;
	conn->state = SCHED_SERVER_CONN_PROVED;
	conn->since_ns = loop_now(&server->loop);
	conn->job_number = bytes_get64(conn->hs->proof + PROOF_JOB_AT);
	conn->worker = conn->hs->peer.from;
	free_handshake(conn);
	loop_change(&server->loop, &conn->watched, EPOLLIN);
}

/* True: all that the handshake has to say has left. */
static bool send_handshake(struct sched_server_conn *conn)
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
		loop_change(&conn->server->loop, &conn->watched, EPOLLOUT);
	else
		lose(conn);
	return false;
}

/* Takes what has come, but no byte behind the handshake. */
static enum esp_status receive_handshake(struct sched_server_conn *conn, struct error *err)
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

static void prove(struct sched_server_conn *conn)
{
	struct error err = {0};
	enum esp_status status = receive_handshake(conn, &err);

	if (status != ESP_OK && status != ESP_PENDING) {
		conn->server->refused++;
		/* A peer that has proved itself and does not fit is told so. */
		if (status != ESP_EMISMATCH || send_handshake(conn))
			lose(conn);
		return;
	}
	if (!send_handshake(conn))
		return;
	if (status == ESP_OK)
		on_proved(conn);
	else
		loop_change(&conn->server->loop, &conn->watched, EPOLLIN);
}

/* ---- events ---- */

static void on_ready(struct loop_fd *watched, uint32_t events)
{
	struct sched_server_conn *conn = (struct sched_server_conn *)(void *)watched;

	(void)events;
	if (conn->state == SCHED_SERVER_CONN_PROVING)
		prove(conn);
	else if (conn->state != SCHED_SERVER_CONN_DEAD)
		receive(conn);
}

static struct sched_server_conn *oldest_unproved(const struct sched_server *server)
{
	struct sched_server_conn *oldest = NULL;

	for (struct sched_server_conn *conn = server->conns; conn; conn = conn->next) {
		if (conn->state == SCHED_SERVER_CONN_PROVING && (!oldest || conn->since_ns < oldest->since_ns))
			oldest = conn;
	}
	return oldest;
}

static enum esp_status begin_proof(struct sched_server_conn *conn, int fd)
{
	const struct handshake_config config = {
		.find = find_key, .find_context = conn->server, .purposes = 1u << HELLO_FABRIC};
	struct error err;

	conn->hs = malloc(sizeof(*conn->hs));
	if (!conn->hs)
		return ESP_ENOMEM;
	handshake_init(conn->hs, HANDSHAKE_LISTENER, &config);
	conn->watched.ready = on_ready;
	return loop_add(&conn->server->loop, &conn->watched, fd, EPOLLIN, &err);
}

void sched_server_conn_accept(struct sched_server *server, int fd)
{
	struct sched_server_conn *conn = calloc(1, sizeof(*conn));

	if (server->unproved >= UNPROVED_MOST)
		lose(oldest_unproved(server));
	if (conn) {
		conn->server = server;
		conn->since_ns = loop_now(&server->loop);
		conn->watched.fd = -1;
	}
	if (!conn || begin_proof(conn, fd) != ESP_OK) {
		close(fd);
		if (conn)
			free_handshake(conn);
		free(conn);
		return;
	}
	conn->next = server->conns;
	server->conns = conn;
	server->unproved++;
	prove(conn);
}

void sched_server_conn_look_after_all(struct sched_server *server, uint64_t now_ns)
{
	for (struct sched_server_conn *conn = server->conns; conn; conn = conn->next) {
		uint64_t age = now_ns - conn->since_ns;

		if ((conn->state == SCHED_SERVER_CONN_PROVING && age > PROOF_PATIENCE) ||
		    (conn->state == SCHED_SERVER_CONN_PROVED && age > REGISTER_PATIENCE))
			lose(conn);
	}
}
