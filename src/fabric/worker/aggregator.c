#include "fabric/worker/aggregator.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "fabric/worker/peer_port_state.h"
#include "wire/crc32c.h"

/* All of it is guarded by the port's lock, but for bytes of data that are there: these stay as they are. */
struct aggregator_input {
	uint64_t epoch, bundle, members; /* members 0: it is no stream */
	uint64_t ready;
	bool is_whole, has_failed;
	uint32_t references;
	uint8_t *data; /* owned */
};

/* ---- inputs ---- */

/* With the lock held. */
static void put_locked(struct aggregator_input *input)
{
	if (!input || --input->references > 0)
		return;
	free(input->data);
	free(input);
}

/* References: of the connection, and of the port's table. */
static struct aggregator_input *make_input(const struct fabric_msg_give *give)
{
	struct aggregator_input *input = calloc(1, sizeof(*input));

	if (!input)
		return NULL;
	*input = (struct aggregator_input){.epoch = give->epoch,
	                                   .bundle = give->bundle,
	                                   .members = give->members,
	                                   .references = 2,
	                                   .data = malloc(give->bytes)};
	if (input->data)
		return input;
	free(input);
	return NULL;
}

/* ---- the port's thread ---- */

void aggregator_begin(struct peer_conn *conn, const struct fabric_msg_give *give)
{
	struct peer_port *port = conn->port;

	if (!port->config.takes_sums || give->bytes != port->config.bytes || !(conn->input = make_input(give))) {
		peer_port_lose(conn);
		return;
	}
	conn->give = *give;
	conn->head_bytes = 0;
	conn->state = PEER_CONN_GIVING;
	pthread_mutex_lock(&port->lock);
	put_locked(port->inputs[conn->worker]);
	port->inputs[conn->worker] = conn->input;
	pthread_cond_broadcast(&port->came);
	pthread_mutex_unlock(&port->lock);
}

/* The connection ends with the answer: the next update has its own. */
static void end_update(struct peer_conn *conn, uint32_t crc)
{
	const struct fabric_msg taken = {.type = FABRIC_TAKEN, .taken = {conn->give.epoch, conn->give.bundle}};
	struct peer_port *port = conn->port;
	uint8_t bytes[FABRIC_MSG_BYTES];

	if (conn->crc == crc) {
		pthread_mutex_lock(&port->lock);
		conn->input->is_whole = true;
		pthread_cond_broadcast(&port->came);
		pthread_mutex_unlock(&port->lock);
		fabric_msg_encode(&taken, bytes);
		(void)!send(conn->watched.fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	peer_port_lose(conn);
}

static void take_given(struct peer_conn *conn)
{
	struct fabric_msg msg;

	if (fabric_msg_decode(conn->head, &msg) && msg.type == FABRIC_GIVEN && msg.given.epoch == conn->give.epoch &&
	    msg.given.bundle == conn->give.bundle)
		end_update(conn, msg.given.crc);
	else
		peer_port_lose(conn);
}

static void take_data(struct peer_conn *conn, size_t got)
{
	struct peer_port *port = conn->port;

	conn->crc = crc32c(conn->crc, conn->input->data + conn->at, got);
	conn->at += got;
	if (conn->give.members) {
		pthread_mutex_lock(&port->lock);
		conn->input->ready = conn->at;
		pthread_cond_broadcast(&port->came);
		pthread_mutex_unlock(&port->lock);
	} else if (conn->at == conn->give.bytes) {
		end_update(conn, conn->give.crc);
	}
}

/* False: nothing more is there, or the connection has ended. */
static bool receive_some(struct peer_conn *conn)
{
	bool is_data = conn->at < conn->give.bytes;
	uint8_t *to = is_data ? conn->input->data + conn->at : conn->head + conn->head_bytes;
	size_t room = is_data ? conn->give.bytes - conn->at : sizeof(conn->head) - conn->head_bytes;
	ssize_t got = recv(conn->watched.fd, to, room, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		peer_port_lose(conn);
		return false;
	}
	conn->heard_ns = loop_now(&conn->port->loop);
	if (is_data)
		take_data(conn, (size_t)got);
	else if ((conn->head_bytes += (size_t)got) == sizeof(conn->head))
		take_given(conn);
	return conn->state == PEER_CONN_GIVING;
}

void aggregator_receive(struct peer_conn *conn)
{
	while (receive_some(conn))
		continue;
}

void aggregator_end(struct peer_conn *conn)
{
	struct peer_port *port = conn->port;

	if (!conn->input)
		return;
	pthread_mutex_lock(&port->lock);
	conn->input->has_failed = !conn->input->is_whole;
	put_locked(conn->input);
	pthread_cond_broadcast(&port->came);
	pthread_mutex_unlock(&port->lock);
	conn->input = NULL;
}

void aggregator_close(struct peer_port *port)
{
	for (uint32_t i = 0; i < PEER_WORKERS_MOST; i++)
		put_locked(port->inputs[i]);
}

/* ---- the caller's side ---- */

static bool is_of(const struct aggregator_input *input, uint64_t epoch, uint64_t bundle)
{
	return input && input->epoch == epoch && input->bundle == bundle;
}

/* With the lock held. */
static bool is_there(const struct peer_port *port, uint32_t worker, uint64_t epoch, uint64_t bundle, bool is_stream)
{
	const struct aggregator_input *input = port->inputs[worker];

	return is_of(input, epoch, bundle) && (is_stream ? input->members != 0 : !input->members && input->is_whole);
}

static uint64_t present(const struct peer_port *port, uint64_t epoch, uint64_t bundle, bool is_stream)
{
	uint64_t workers = 0;

	for (uint32_t i = 0; i < PEER_WORKERS_MOST; i++) {
		if (is_there(port, i, epoch, bundle, is_stream))
			workers |= UINT64_C(1) << i;
	}
	return workers;
}

/* With the lock held. Numbers of sums count up in an epoch. */
static uint32_t take(struct peer_port *port, uint64_t epoch, uint64_t bundle, uint64_t workers,
                     struct aggregator_update *out)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < PEER_WORKERS_MOST; i++) {
		struct aggregator_input *input = port->inputs[i];

		if (workers >> i & 1) {
			out[count++] = (struct aggregator_update){
				i, input->members, (const float *)(const void *)input->data, input};
			port->inputs[i] = NULL;
		} else if (input && (input->epoch < epoch || (input->epoch == epoch && input->bundle <= bundle))) {
			put_locked(input);
			port->inputs[i] = NULL;
		}
	}
	return count;
}

/* False: the time has come. */
static bool wait_until(struct peer_port *port, uint64_t until_ns)
{
	const struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};

	return pthread_cond_timedwait(&port->came, &port->lock, &until) != ETIMEDOUT;
}

uint32_t aggregator_collect(struct peer_port *port, uint64_t epoch, uint64_t bundle, uint64_t workers,
                            uint64_t until_ns, struct aggregator_update *out)
{
	pthread_mutex_lock(&port->lock);
	while ((present(port, epoch, bundle, false) & workers) != workers && wait_until(port, until_ns))
		continue;
	uint32_t count = take(port, epoch, bundle, present(port, epoch, bundle, false) & workers, out);
	pthread_mutex_unlock(&port->lock);
	return count;
}

uint32_t aggregator_await(struct peer_port *port, uint64_t epoch, uint64_t bundle, uint32_t most, uint64_t until_ns,
                          struct aggregator_update *out)
{
	pthread_mutex_lock(&port->lock);
	while ((uint32_t)__builtin_popcountll(present(port, epoch, bundle, true)) < most && wait_until(port, until_ns))
		continue;
	uint32_t count = take(port, epoch, bundle, present(port, epoch, bundle, true), out);
	pthread_mutex_unlock(&port->lock);
	return count;
}

void aggregator_put(struct peer_port *port, struct aggregator_update *update)
{
	pthread_mutex_lock(&port->lock);
	put_locked(update->input);
	pthread_mutex_unlock(&port->lock);
	update->input = NULL;
}

uint64_t aggregator_await_bytes(struct peer_port *port, const struct aggregator_update *update, uint64_t at,
                                uint64_t until_ns)
{
	const struct aggregator_input *input = update->input;

	pthread_mutex_lock(&port->lock);
	while (input->ready <= at && !input->has_failed && wait_until(port, until_ns))
		continue;
	uint64_t ready = input->ready > at && !input->has_failed ? input->ready : 0;
	pthread_mutex_unlock(&port->lock);
	return ready;
}

bool aggregator_await_end(struct peer_port *port, const struct aggregator_update *update, uint64_t until_ns)
{
	const struct aggregator_input *input = update->input;

	pthread_mutex_lock(&port->lock);
	while (!input->is_whole && !input->has_failed && wait_until(port, until_ns))
		continue;
	bool is_whole = input->is_whole;
	pthread_mutex_unlock(&port->lock);
	return is_whole;
}
