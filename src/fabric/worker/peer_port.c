#include "fabric/worker/peer_port.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "fabric/worker/peer_port_state.h"
#include "fabric/worker/relay.h"
#include "node/net/listen.h"

#define UNPROVED_MOST 128u
#define ACCEPTS 16u
#define PROOF_PATIENCE (2 * NS_PER_S)
#define SILENCE_MOST (10 * NS_PER_S) /* of a worker that sends or fetches */

/* ---- connections ---- */

void peer_port_lose(struct peer_conn *conn)
{
	int fd = conn->watched.fd;

	if (conn->state == PEER_CONN_DEAD)
		return;
	conn->port->unproved -= conn->state == PEER_CONN_PROVING;
	conn->state = PEER_CONN_DEAD;
	loop_remove(&conn->port->loop, &conn->watched);
	close(fd);
	if (conn->hs)
		handshake_fini(conn->hs);
	free(conn->hs);
	conn->hs = NULL;
	aggregator_end(conn);
	relay_end(conn);
}

static void free_dead(struct peer_port *port)
{
	struct peer_conn **at = &port->conns;

	while (*at) {
		struct peer_conn *conn = *at;

		if (conn->state != PEER_CONN_DEAD) {
			at = &conn->next;
			continue;
		}
		*at = conn->next;
		free(conn);
	}
}

/* ---- what a peer wants ---- */

static void take_head(struct peer_conn *conn)
{
	struct fabric_msg msg;

	if (!fabric_msg_decode(conn->head, &msg))
		peer_port_lose(conn);
	else if (msg.type == FABRIC_GIVE)
		aggregator_begin(conn, &msg.give);
	else if (msg.type == FABRIC_FETCH)
		relay_begin(conn, &msg.fetch);
	else
		peer_port_lose(conn);
}

static void receive_head(struct peer_conn *conn)
{
	ssize_t got = recv(conn->watched.fd, conn->head + conn->head_bytes, sizeof(conn->head) - conn->head_bytes,
	                   MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		peer_port_lose(conn);
		return;
	}
	conn->heard_ns = loop_now(&conn->port->loop);
	conn->head_bytes += (size_t)got;
	if (conn->head_bytes == sizeof(conn->head))
		take_head(conn);
}

/* ---- proofs ---- */

static bool send_handshake(struct peer_conn *conn)
{
	const uint8_t *bytes;
	size_t n;

	for (;;) {
		handshake_output(conn->hs, &bytes, &n);
		if (n == 0)
			return true;
		ssize_t sent = send(conn->watched.fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent <= 0)
			return false; /* some hundred bytes on a new connection: it has ended */
		handshake_sent(conn->hs, (size_t)sent);
	}
}

static enum esp_status receive_handshake(struct peer_conn *conn)
{
	uint8_t bytes[PROOF_BYTES];
	size_t wanted = handshake_wants(conn->hs), used;

	if (wanted == 0)
		return conn->hs->status;
	ssize_t got = recv(conn->watched.fd, bytes, wanted < sizeof(bytes) ? wanted : sizeof(bytes), MSG_DONTWAIT);
	if (got > 0)
		return handshake_input(conn->hs, bytes, (size_t)got, &used, NULL);
	return got < 0 && (errno == EAGAIN || errno == EINTR) ? ESP_PENDING : ESP_ELINK;
}

static void prove(struct peer_conn *conn)
{
	enum esp_status status = receive_handshake(conn);

	if (!send_handshake(conn) || (status != ESP_OK && status != ESP_PENDING)) {
		peer_port_lose(conn);
		return;
	}
	if (status != ESP_OK)
		return;
	conn->worker = conn->hs->peer.from;
	if (conn->worker >= conn->port->ticket.workers || conn->worker >= PEER_WORKERS_MOST) {
		peer_port_lose(conn);
		return;
	}
	conn->state = PEER_CONN_PROVED;
	conn->port->unproved--;
	handshake_fini(conn->hs);
	free(conn->hs);
	conn->hs = NULL;
}

static void on_ready(struct loop_fd *watched, uint32_t events)
{
	struct peer_conn *conn = (struct peer_conn *)(void *)watched;

	(void)events;
	if (conn->state == PEER_CONN_PROVING)
		prove(conn);
	if (conn->state == PEER_CONN_PROVED)
		receive_head(conn);
	if (conn->state == PEER_CONN_GIVING)
		aggregator_receive(conn);
	else if (conn->state == PEER_CONN_FETCHING)
		relay_serve(conn);
}

/* ---- the port ---- */

static bool begin_proof(struct peer_conn *conn, int fd)
{
	const struct ticket *ticket = &conn->port->ticket;
	struct handshake_config config = {.job = ticket->job,
	                                  .hello = {.from = conn->port->config.worker,
	                                            .to = HANDSHAKE_ANY_RANK,
	                                            .role = NODE_WORKER,
	                                            .to_role = NODE_WORKER,
	                                            .size = ticket->workers},
	                                  .purposes = 1u << HELLO_FABRIC};
	struct error err;

	conn->hs = malloc(sizeof(*conn->hs));
	if (!conn->hs)
		return false;
	memcpy(config.key, ticket->key, sizeof(config.key));
	handshake_init(conn->hs, HANDSHAKE_LISTENER, &config);
	explicit_bzero(&config, sizeof(config));
	conn->watched.ready = on_ready;
	return loop_add(&conn->port->loop, &conn->watched, fd, EPOLLIN, &err) == ESP_OK;
}

static void lose_oldest_unproved(struct peer_port *port)
{
	struct peer_conn *oldest = NULL;

	for (struct peer_conn *conn = port->conns; conn; conn = conn->next) {
		if (conn->state == PEER_CONN_PROVING && (!oldest || conn->heard_ns < oldest->heard_ns))
			oldest = conn;
	}
	if (oldest)
		peer_port_lose(oldest);
}

static void accept_one(struct peer_port *port, int fd)
{
	struct peer_conn *conn = calloc(1, sizeof(*conn));

	if (port->unproved >= UNPROVED_MOST)
		lose_oldest_unproved(port);
	if (conn) {
		conn->port = port;
		conn->heard_ns = loop_now(&port->loop);
	}
	if (!conn || !begin_proof(conn, fd)) {
		close(fd);
		if (conn && conn->hs) {
			handshake_fini(conn->hs);
			free(conn->hs);
		}
		free(conn);
		return;
	}
	conn->next = port->conns;
	port->conns = conn;
	port->unproved++;
	prove(conn);
}

static void on_port(struct loop_fd *watched, uint32_t events)
{
	struct peer_port *port =
		(struct peer_port *)(void *)((char *)watched - offsetof(struct peer_port, watched));

	(void)events;
	for (unsigned i = 0; i < ACCEPTS; i++) {
		int fd = accept4(watched->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE)) /* until on_second(), so that the thread does not spin */
			loop_change(&port->loop, watched, 0);
		if (fd < 0)
			return;
		accept_one(port, fd);
	}
}

static void on_second(struct loop_timer *timer, uint64_t now_ns)
{
	struct peer_port *port =
		(struct peer_port *)(void *)((char *)timer - offsetof(struct peer_port, seconds));

	loop_change(&port->loop, &port->watched, EPOLLIN);
	for (struct peer_conn *conn = port->conns; conn; conn = conn->next) {
		if (now_ns - conn->heard_ns > (conn->state == PEER_CONN_PROVING ? PROOF_PATIENCE : SILENCE_MOST))
			peer_port_lose(conn);
	}
	loop_at(&port->loop, timer, now_ns + NS_PER_S);
}

static uint64_t on_turn(void *context, uint64_t now_ns)
{
	(void)now_ns;
	free_dead(context);
	return UINT64_MAX;
}

/* ---- life ---- */

static enum esp_status open_port(struct peer_port *port, struct error *err)
{
	struct sockaddr_storage name = {.ss_family = AF_INET6};
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&name;
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)&name;

	six->sin6_addr = in6addr_any;
	int fd = -1;
	if (address_is_loopback(&port->ticket.scheduler)) {
		*four = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		fd = listen_at(&name, 0, false, 0);
	} else {
		fd = listen_at(&name, 0, true, 0);
		if (fd < 0) { /* a kernel without IPv6 */
			*four = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
			fd = listen_at(&name, 0, false, 0);
		}
	}
	if (fd < 0)
		return error_set(err, ESP_ELINK, "no port for other workers: %s", strerror(errno));
	port->number = listen_port(fd);
	port->watched.ready = on_port;
	enum esp_status status = loop_add(&port->loop, &port->watched, fd, EPOLLIN, err);
	if (status != ESP_OK)
		close(fd);
	return status;
}

static void *thread_main(void *argument)
{
	struct peer_port *port = argument;

	pthread_setname_np(pthread_self(), "esp-peers");
	loop_run(&port->loop);
	return NULL;
}

static enum esp_status start_thread(struct peer_port *port, struct error *err)
{
	sigset_t all, before;

	loop_expect(&port->loop, true);
	sigfillset(&all); /* signals are the program's other threads' */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	port->runs = pthread_create(&port->thread, NULL, thread_main, port) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (port->runs)
		return ESP_OK;
	loop_expect(&port->loop, false);
	return error_set(err, ESP_ELIMIT, "no thread for other workers");
}

static void init_locks(struct peer_port *port)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&port->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&port->came, &attributes);
	pthread_condattr_destroy(&attributes);
}

enum esp_status peer_port_open(const struct peer_port_config *config, struct peer_port **out, struct error *err)
{
	struct peer_port *port = calloc(1, sizeof(*port));

	assert(config->ticket->has_scheduler && config->bytes > 0);
	if (!port)
		return error_set(err, ESP_ENOMEM, "no memory for a port for other workers");
	port->config = *config;
	port->ticket = *config->ticket;
	port->config.ticket = &port->ticket;
	port->watched.fd = -1;
	enum esp_status status = loop_init(&port->loop, NULL, err);
	if (status != ESP_OK) {
		explicit_bzero(port, sizeof(*port));
		free(port);
		return status;
	}
	init_locks(port);
	loop_set_hook(&port->loop, on_turn, port);
	port->progress.run = relay_on_progress;
	port->seconds.due = on_second;
	loop_at(&port->loop, &port->seconds, loop_now(&port->loop) + NS_PER_S);
	status = open_port(port, err);
	if (status == ESP_OK)
		status = start_thread(port, err);
	if (status != ESP_OK) {
		peer_port_close(port);
		return status;
	}
	*out = port;
	return ESP_OK;
}

void peer_port_close(struct peer_port *port)
{
	if (!port)
		return;
	if (port->runs) {
		loop_stop(&port->loop);
		pthread_join(port->thread, NULL);
	}
	for (struct peer_conn *conn = port->conns; conn; conn = conn->next)
		peer_port_lose(conn);
	free_dead(port);
	if (port->watched.fd >= 0) {
		int fd = port->watched.fd;

		loop_remove(&port->loop, &port->watched);
		close(fd);
	}
	aggregator_close(port);
	relay_put(port, port->model);
	loop_fini(&port->loop);
	pthread_cond_destroy(&port->came);
	pthread_mutex_destroy(&port->lock);
	explicit_bzero(port, sizeof(*port));
	free(port);
}

uint16_t peer_port_number(const struct peer_port *port)
{
	return port->number;
}
