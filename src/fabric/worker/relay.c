#include "fabric/worker/relay.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "fabric/worker/peer_port_state.h"
#include "wire/crc32c.h"

#define PIECE 65536u      /* bytes that leave at once */
#define PIECES_A_SECOND 200u /* at least, of one that keeps to a rate */
#define PIECES_A_TURN 16u /* then other connections have theirs */

/* All of it is guarded by the port's lock, but for bytes of data that are ready: these stay as they are. */
struct relay_model {
	uint64_t epoch, tree;
	uint64_t ready, version;
	bool is_whole, has_failed;
	uint32_t references;
	uint8_t *data; /* owned */
};

/* ---- models ---- */

/* With the lock held. */
static void put_locked(struct relay_model *model)
{
	if (!model || --model->references > 0)
		return;
	free(model->data);
	free(model);
}

/* With the lock held: the memory of the former model, if no other reference to it is left; else new memory. */
static uint8_t *find_memory(struct peer_port *port)
{
	struct relay_model *former = port->model;
	uint8_t *data;

	if (!former || former->references > 1)
		return malloc(port->config.bytes);
	data = former->data;
	former->data = NULL;
	return data;
}

struct relay_model *relay_open(struct peer_port *port, uint64_t epoch, uint64_t tree)
{
	struct relay_model *model = calloc(1, sizeof(*model));

	if (!model)
		return NULL;
	pthread_mutex_lock(&port->lock);
	*model = (struct relay_model){.epoch = epoch, .tree = tree, .references = 2, .data = find_memory(port)};
	if (model->data) {
		put_locked(port->model);
		port->model = model;
	}
	pthread_mutex_unlock(&port->lock);
	if (model->data) {
		loop_post(&port->loop, &port->progress);
		return model;
	}
	free(model);
	return NULL;
}

uint8_t *relay_data(struct relay_model *model)
{
	return model->data;
}

void relay_advance(struct peer_port *port, struct relay_model *model, uint64_t ready)
{
	pthread_mutex_lock(&port->lock);
	assert(ready >= model->ready && ready <= port->config.bytes);
	model->ready = ready;
	pthread_mutex_unlock(&port->lock);
	loop_post(&port->loop, &port->progress);
}

void relay_finish(struct peer_port *port, struct relay_model *model, uint64_t version)
{
	pthread_mutex_lock(&port->lock);
	model->ready = port->config.bytes;
	model->version = version;
	model->is_whole = true;
	pthread_mutex_unlock(&port->lock);
	loop_post(&port->loop, &port->progress);
}

void relay_put(struct peer_port *port, struct relay_model *model)
{
	if (!model)
		return;
	pthread_mutex_lock(&port->lock);
	bool has_failed = !model->is_whole;
	model->has_failed = has_failed;
	put_locked(model);
	pthread_mutex_unlock(&port->lock);
	if (has_failed)
		loop_post(&port->loop, &port->progress);
}

/* ---- the port's thread ---- */

static bool is_newer(const struct relay_model *model, const struct fabric_msg_fetch *fetch)
{
	return model->epoch > fetch->epoch || (model->epoch == fetch->epoch && model->tree > fetch->tree);
}

/* *out: the model as it is now. False: the connection waits, or is lost. */
static bool look(struct peer_conn *conn, struct relay_model *out)
{
	struct peer_port *port = conn->port;
	struct relay_model *latest;
	bool is_over = false;

	pthread_mutex_lock(&port->lock);
	latest = port->model;
	if (!conn->model && latest && latest->epoch == conn->fetch.epoch && latest->tree == conn->fetch.tree) {
		conn->model = latest;
		latest->references++;
	}
	if (conn->model)
		*out = *conn->model;
	is_over = conn->model ? out->has_failed : latest && is_newer(latest, &conn->fetch);
	pthread_mutex_unlock(&port->lock);
	if (is_over)
		peer_port_lose(conn);
	return !is_over && conn->model;
}

/* Returns how many bytes have left; 0: none now. */
static size_t put(struct peer_conn *conn, const uint8_t *data, size_t bytes)
{
	ssize_t sent = send(conn->watched.fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent > 0) {
		conn->heard_ns = loop_now(&conn->port->loop);
		return (size_t)sent;
	}
	if (errno == EAGAIN || errno == EINTR)
		loop_change(&conn->port->loop, &conn->watched, EPOLLIN | EPOLLOUT);
	else
		peer_port_lose(conn);
	return 0;
}

static bool send_piece(struct peer_conn *conn, const struct relay_model *model)
{
	uint64_t rest = model->ready - conn->at, least = conn->pace.rate / PIECES_A_SECOND + 1;
	uint64_t most = conn->pace.rate > 0 && least < PIECE ? least : PIECE;

	if (!pace_fill(&conn->pace, loop_now(&conn->port->loop))) {
		loop_at(&conn->port->loop, &conn->paced, pace_due(&conn->pace));
		return false;
	}
	size_t sent = put(conn, model->data + conn->at, rest < most ? rest : most);
	conn->crc = crc32c(conn->crc, model->data + conn->at, sent);
	conn->at += sent;
	conn->pace.budget -= (int64_t)sent;
	return sent > 0;
}

/* The model has left: its version follows, and the connection ends. */
static bool send_version(struct peer_conn *conn, const struct relay_model *model)
{
	const struct fabric_msg msg = {.type = FABRIC_FETCHED,
	                               .fetched = {model->epoch, model->tree, model->version, conn->crc}};

	fabric_msg_encode(&msg, conn->head);
	conn->head_bytes += put(conn, conn->head + conn->head_bytes, sizeof(conn->head) - conn->head_bytes);
	if (conn->head_bytes == sizeof(conn->head))
		peer_port_lose(conn);
	return false;
}

/* True: more may follow at once. */
static bool send_some(struct peer_conn *conn)
{
	struct relay_model model = {0};

	if (!look(conn, &model))
		return false;
	if (conn->at < model.ready)
		return send_piece(conn, &model);
	return model.is_whole && send_version(conn, &model);
}

static void on_paced(struct loop_timer *timer, uint64_t now_ns)
{
	struct peer_conn *conn = (struct peer_conn *)(void *)((char *)timer - offsetof(struct peer_conn, paced));

	(void)now_ns;
	relay_serve(conn);
}

void relay_begin(struct peer_conn *conn, const struct fabric_msg_fetch *fetch)
{
	if (fetch->bytes != conn->port->config.bytes) {
		peer_port_lose(conn);
		return;
	}
	conn->fetch = *fetch;
	conn->head_bytes = 0;
	conn->paced.due = on_paced;
	pace_set(&conn->pace, fetch->rate, loop_now(&conn->port->loop));
	conn->state = PEER_CONN_FETCHING;
}

/* Nothing is to come from a worker that fetches: whatever shows ends it. */
static bool is_quiet(const struct peer_conn *conn)
{
	uint8_t byte;

	return recv(conn->watched.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR);
}

void relay_serve(struct peer_conn *conn)
{
	uint32_t pieces = 0;

	if (!is_quiet(conn)) {
		peer_port_lose(conn);
		return;
	}
	loop_change(&conn->port->loop, &conn->watched, EPOLLIN);
	while (pieces < PIECES_A_TURN && send_some(conn))
		pieces++;
	if (pieces == PIECES_A_TURN)
		loop_change(&conn->port->loop, &conn->watched, EPOLLIN | EPOLLOUT);
}

void relay_end(struct peer_conn *conn)
{
	loop_cancel(&conn->port->loop, &conn->paced);
	pthread_mutex_lock(&conn->port->lock);
	put_locked(conn->model);
	pthread_mutex_unlock(&conn->port->lock);
	conn->model = NULL;
}

void relay_on_progress(struct loop_task *task)
{
	struct peer_port *port = (struct peer_port *)(void *)((char *)task - offsetof(struct peer_port, progress));

	for (struct peer_conn *conn = port->conns; conn; conn = conn->next) {
		if (conn->state == PEER_CONN_FETCHING)
			relay_serve(conn);
	}
}
