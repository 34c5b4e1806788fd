#include "fabric/worker/aggregator.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "node/auth/handshake.h"
#include "node/net/listen.h"
#include "wire/crc32c.h"
#include "wire/fabric_msg.h"

#define WORKERS_MOST 64u
#define UNPROVED_MOST 128u
#define ACCEPTS 16u
#define PROOF_PATIENCE (2 * NS_PER_S)
#define SILENCE_MOST (10 * NS_PER_S) /* of a member that sends */

enum conn_state {
	CONN_PROVING,
	CONN_PROVED, /* the head of its update is awaited */
	CONN_SENDING,
	CONN_DEAD,   /* freed when the turn of the loop is over */
};

struct conn {
	struct loop_fd watched; /* first member */
	struct aggregator *aggregator;
	struct conn *next;
	uint8_t state; /* enum conn_state */
	uint64_t heard_ns;
	struct handshake *hs; /* owned; while PROVING */
	uint32_t worker;
	uint8_t head[FABRIC_MSG_BYTES];
	size_t head_bytes;
	struct fabric_msg_give give;
	uint8_t *data; /* owned; SENDING */
	uint64_t at;
};

/* The latest update of a worker. */
struct kept {
	uint64_t epoch, bundle;
	void *data; /* owned; NULL: none */
};

struct aggregator {
	struct aggregator_config config;
	struct ticket ticket;
	struct loop_fd port;
	uint16_t number;
	struct loop loop;
	struct loop_timer seconds;
	struct conn *conns;
	uint32_t unproved;
	pthread_t thread;
	bool runs;

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t came;
	struct kept kept[WORKERS_MOST];
};

/* ---- connections ---- */

static void lose(struct conn *conn)
{
	int fd = conn->watched.fd;

	if (conn->state == CONN_DEAD)
		return;
	conn->aggregator->unproved -= conn->state == CONN_PROVING;
	conn->state = CONN_DEAD;
	loop_remove(&conn->aggregator->loop, &conn->watched);
	close(fd);
	if (conn->hs)
		handshake_fini(conn->hs);
	free(conn->hs);
	conn->hs = NULL;
	free(conn->data);
	conn->data = NULL;
}

static void free_dead(struct aggregator *aggregator)
{
	struct conn **at = &aggregator->conns;

	while (*at) {
		struct conn *conn = *at;

		if (conn->state != CONN_DEAD) {
			at = &conn->next;
			continue;
		}
		*at = conn->next;
		free(conn);
	}
}

/* ---- updates ---- */

static void keep(struct conn *conn)
{
	struct aggregator *aggregator = conn->aggregator;
	struct kept *kept = &aggregator->kept[conn->worker];

	pthread_mutex_lock(&aggregator->lock);
	free(kept->data);
	*kept = (struct kept){conn->give.epoch, conn->give.bundle, conn->data};
	conn->data = NULL;
	pthread_cond_broadcast(&aggregator->came);
	pthread_mutex_unlock(&aggregator->lock);
}

/* The member's connection ends with the answer: the next update has its own. */
static void end_update(struct conn *conn)
{
	const struct fabric_msg taken = {.type = FABRIC_TAKEN, .taken = {conn->give.epoch, conn->give.bundle}};
	uint8_t bytes[FABRIC_MSG_BYTES];

	if (crc32c(0, conn->data, conn->give.bytes) == conn->give.crc) {
		keep(conn);
		fabric_msg_encode(&taken, bytes);
		(void)!send(conn->watched.fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	lose(conn);
}

static void take_head(struct conn *conn)
{
	struct fabric_msg msg;

	if (!fabric_msg_decode(conn->head, &msg) || msg.type != FABRIC_GIVE ||
	    msg.give.bytes != conn->aggregator->config.bytes) {
		lose(conn);
		return;
	}
	conn->give = msg.give;
	conn->data = malloc(msg.give.bytes);
	if (!conn->data) {
		lose(conn);
		return;
	}
	conn->state = CONN_SENDING;
}

/* False: nothing more is there, or the connection has ended. */
static bool receive_some(struct conn *conn)
{
	bool is_head = conn->state == CONN_PROVED;
	uint8_t *to = is_head ? conn->head + conn->head_bytes : conn->data + conn->at;
	size_t room = is_head ? sizeof(conn->head) - conn->head_bytes : conn->give.bytes - conn->at;
	ssize_t got = recv(conn->watched.fd, to, room, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		lose(conn);
		return false;
	}
	conn->heard_ns = loop_now(&conn->aggregator->loop);
	if (is_head)
		conn->head_bytes += (size_t)got;
	else
		conn->at += (uint64_t)got;
	if (is_head && conn->head_bytes == sizeof(conn->head))
		take_head(conn);
	else if (!is_head && conn->at == conn->give.bytes)
		end_update(conn);
	return conn->state != CONN_DEAD;
}

/* ---- proofs ---- */

static bool send_handshake(struct conn *conn)
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

static enum esp_status receive_handshake(struct conn *conn)
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

static void prove(struct conn *conn)
{
	enum esp_status status = receive_handshake(conn);

	if (!send_handshake(conn) || (status != ESP_OK && status != ESP_PENDING)) {
		lose(conn);
		return;
	}
	if (status != ESP_OK)
		return;
	conn->worker = conn->hs->peer.from;
	if (conn->worker >= conn->aggregator->ticket.workers || conn->worker >= WORKERS_MOST) {
		lose(conn);
		return;
	}
	conn->state = CONN_PROVED;
	conn->aggregator->unproved--;
	handshake_fini(conn->hs);
	free(conn->hs);
	conn->hs = NULL;
}

static void on_ready(struct loop_fd *watched, uint32_t events)
{
	struct conn *conn = (struct conn *)(void *)watched;

	(void)events;
	if (conn->state == CONN_PROVING)
		prove(conn);
	while ((conn->state == CONN_PROVED || conn->state == CONN_SENDING) && receive_some(conn))
		continue;
}

/* ---- the port ---- */

static bool begin_proof(struct conn *conn, int fd)
{
	const struct ticket *ticket = &conn->aggregator->ticket;
	struct handshake_config config = {.job = ticket->job,
	                                  .hello = {.from = conn->aggregator->config.worker,
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
	return loop_add(&conn->aggregator->loop, &conn->watched, fd, EPOLLIN, &err) == ESP_OK;
}

static void lose_oldest_unproved(struct aggregator *aggregator)
{
	struct conn *oldest = NULL;

	for (struct conn *conn = aggregator->conns; conn; conn = conn->next) {
		if (conn->state == CONN_PROVING && (!oldest || conn->heard_ns < oldest->heard_ns))
			oldest = conn;
	}
	if (oldest)
		lose(oldest);
}

static void accept_one(struct aggregator *aggregator, int fd)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (aggregator->unproved >= UNPROVED_MOST)
		lose_oldest_unproved(aggregator);
	if (conn) {
		conn->aggregator = aggregator;
		conn->heard_ns = loop_now(&aggregator->loop);
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
	conn->next = aggregator->conns;
	aggregator->conns = conn;
	aggregator->unproved++;
	prove(conn);
}

static void on_port(struct loop_fd *watched, uint32_t events)
{
	struct aggregator *aggregator =
		(struct aggregator *)(void *)((char *)watched - offsetof(struct aggregator, port));

	(void)events;
	for (unsigned i = 0; i < ACCEPTS; i++) {
		int fd = accept4(watched->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		accept_one(aggregator, fd);
	}
}

static void on_second(struct loop_timer *timer, uint64_t now_ns)
{
	struct aggregator *aggregator =
		(struct aggregator *)(void *)((char *)timer - offsetof(struct aggregator, seconds));

	for (struct conn *conn = aggregator->conns; conn; conn = conn->next) {
		if (now_ns - conn->heard_ns > (conn->state == CONN_PROVING ? PROOF_PATIENCE : SILENCE_MOST))
			lose(conn);
	}
	loop_at(&aggregator->loop, timer, now_ns + NS_PER_S);
}

static uint64_t on_turn(void *context, uint64_t now_ns)
{
	(void)now_ns;
	free_dead(context);
	return UINT64_MAX;
}

/* ---- life ---- */

static enum esp_status open_port(struct aggregator *aggregator, struct error *err)
{
	struct sockaddr_storage name = {.ss_family = AF_INET6};
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&name;
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)&name;

	six->sin6_addr = in6addr_any;
	int fd = -1;
	if (address_is_loopback(&aggregator->ticket.scheduler)) {
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
		return error_set(err, ESP_ELINK, "no port for updates of other workers: %s", strerror(errno));
	aggregator->number = listen_port(fd);
	aggregator->port.ready = on_port;
	enum esp_status status = loop_add(&aggregator->loop, &aggregator->port, fd, EPOLLIN, err);
	if (status != ESP_OK)
		close(fd);
	return status;
}

static void *thread_main(void *argument)
{
	struct aggregator *aggregator = argument;

	pthread_setname_np(pthread_self(), "esp-aggregate");
	loop_run(&aggregator->loop);
	return NULL;
}

static enum esp_status start_thread(struct aggregator *aggregator, struct error *err)
{
	sigset_t all, before;

	loop_expect(&aggregator->loop, true);
	sigfillset(&all); /* signals are the program's other threads' */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	aggregator->runs = pthread_create(&aggregator->thread, NULL, thread_main, aggregator) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (aggregator->runs)
		return ESP_OK;
	loop_expect(&aggregator->loop, false);
	return error_set(err, ESP_ELIMIT, "no thread for updates of other workers");
}

static void init_locks(struct aggregator *aggregator)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&aggregator->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&aggregator->came, &attributes);
	pthread_condattr_destroy(&attributes);
}

enum esp_status aggregator_open(const struct aggregator_config *config, struct aggregator **out, struct error *err)
{
	struct aggregator *aggregator = calloc(1, sizeof(*aggregator));

	assert(config->ticket->has_scheduler && config->bytes > 0 && config->bytes % sizeof(float) == 0);
	if (!aggregator)
		return error_set(err, ESP_ENOMEM, "no memory for updates of other workers");
	aggregator->config = *config;
	aggregator->ticket = *config->ticket;
	aggregator->config.ticket = &aggregator->ticket;
	aggregator->port.fd = -1;
	enum esp_status status = loop_init(&aggregator->loop, NULL, err);
	if (status != ESP_OK) {
		explicit_bzero(aggregator, sizeof(*aggregator));
		free(aggregator);
		return status;
	}
	init_locks(aggregator);
	loop_set_hook(&aggregator->loop, on_turn, aggregator);
	aggregator->seconds.due = on_second;
	loop_at(&aggregator->loop, &aggregator->seconds, loop_now(&aggregator->loop) + NS_PER_S);
	status = open_port(aggregator, err);
	if (status == ESP_OK)
		status = start_thread(aggregator, err);
	if (status != ESP_OK) {
		aggregator_close(aggregator);
		return status;
	}
	*out = aggregator;
	return ESP_OK;
}

void aggregator_close(struct aggregator *aggregator)
{
	if (!aggregator)
		return;
	if (aggregator->runs) {
		loop_stop(&aggregator->loop);
		pthread_join(aggregator->thread, NULL);
	}
	for (struct conn *conn = aggregator->conns; conn; conn = conn->next)
		lose(conn);
	free_dead(aggregator);
	if (aggregator->port.fd >= 0) {
		int fd = aggregator->port.fd;

		loop_remove(&aggregator->loop, &aggregator->port);
		close(fd);
	}
	for (uint32_t i = 0; i < WORKERS_MOST; i++)
		free(aggregator->kept[i].data);
	loop_fini(&aggregator->loop);
	pthread_cond_destroy(&aggregator->came);
	pthread_mutex_destroy(&aggregator->lock);
	explicit_bzero(aggregator, sizeof(*aggregator));
	free(aggregator);
}

uint16_t aggregator_port(const struct aggregator *aggregator)
{
	return aggregator->number;
}

/* ---- the caller's side ---- */

static uint64_t present(const struct aggregator *aggregator, uint64_t epoch, uint64_t bundle)
{
	uint64_t workers = 0;

	for (uint32_t i = 0; i < WORKERS_MOST; i++) {
		const struct kept *kept = &aggregator->kept[i];

		if (kept->data && kept->epoch == epoch && kept->bundle == bundle)
			workers |= UINT64_C(1) << i;
	}
	return workers;
}

/* With the lock held. */
static uint32_t take_kept(struct aggregator *aggregator, uint64_t workers, struct aggregator_update *out)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < WORKERS_MOST; i++) {
		struct kept *kept = &aggregator->kept[i];

		if (workers >> i & 1)
			out[count++] = (struct aggregator_update){i, kept->data};
		else
			free(kept->data);
		*kept = (struct kept){0};
	}
	return count;
}

uint32_t aggregator_collect(struct aggregator *aggregator, uint64_t epoch, uint64_t bundle, uint64_t workers,
                            uint64_t until_ns, struct aggregator_update *out)
{
	const struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};

	pthread_mutex_lock(&aggregator->lock);
	while ((present(aggregator, epoch, bundle) & workers) != workers) {
		if (pthread_cond_timedwait(&aggregator->came, &aggregator->lock, &until) == ETIMEDOUT)
			break;
	}
	uint32_t count = take_kept(aggregator, present(aggregator, epoch, bundle) & workers, out);
	pthread_mutex_unlock(&aggregator->lock);
	return count;
}
