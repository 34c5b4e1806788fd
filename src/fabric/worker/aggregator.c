#include "fabric/worker/aggregator.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "fabric/worker/peer_port_state.h"
#include "wire/crc32c.h"

/* ---- the port's thread ---- */

void aggregator_begin(struct peer_conn *conn, const struct fabric_msg_give *give)
{
	const struct peer_port_config *config = &conn->port->config;

	if (!config->takes_sums || give->bytes != config->bytes || !(conn->data = malloc(give->bytes))) {
		peer_port_lose(conn);
		return;
	}
	conn->give = *give;
	conn->state = PEER_CONN_GIVING;
}

static void keep(struct peer_conn *conn)
{
	struct peer_port *port = conn->port;
	struct peer_kept *kept = &port->kept[conn->worker];

	pthread_mutex_lock(&port->lock);
	free(kept->data);
	*kept = (struct peer_kept){conn->give.epoch, conn->give.bundle, conn->data};
	conn->data = NULL;
	pthread_cond_broadcast(&port->came);
	pthread_mutex_unlock(&port->lock);
}

/* The member's connection ends with the answer: the next update has its own. */
static void end_update(struct peer_conn *conn)
{
	const struct fabric_msg taken = {.type = FABRIC_TAKEN, .taken = {conn->give.epoch, conn->give.bundle}};
	uint8_t bytes[FABRIC_MSG_BYTES];

	if (crc32c(0, conn->data, conn->give.bytes) == conn->give.crc) {
		keep(conn);
		fabric_msg_encode(&taken, bytes);
		(void)!send(conn->watched.fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	peer_port_lose(conn);
}

void aggregator_receive(struct peer_conn *conn)
{
	while (conn->state == PEER_CONN_GIVING) {
		ssize_t got = recv(conn->watched.fd, conn->data + conn->at, conn->give.bytes - conn->at, MSG_DONTWAIT);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			peer_port_lose(conn);
			return;
		}
		conn->heard_ns = loop_now(&conn->port->loop);
		conn->at += (uint64_t)got;
		if (conn->at == conn->give.bytes)
			end_update(conn);
	}
}

/* ---- the caller's side ---- */

static uint64_t present(const struct peer_port *port, uint64_t epoch, uint64_t bundle)
{
	uint64_t workers = 0;

	for (uint32_t i = 0; i < PEER_WORKERS_MOST; i++) {
		const struct peer_kept *kept = &port->kept[i];

		if (kept->data && kept->epoch == epoch && kept->bundle == bundle)
			workers |= UINT64_C(1) << i;
	}
	return workers;
}

/* With the lock held. */
static uint32_t take_kept(struct peer_port *port, uint64_t workers, struct aggregator_update *out)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < PEER_WORKERS_MOST; i++) {
		struct peer_kept *kept = &port->kept[i];

		if (workers >> i & 1)
			out[count++] = (struct aggregator_update){i, kept->data};
		else
			free(kept->data);
		*kept = (struct peer_kept){0};
	}
	return count;
}

uint32_t aggregator_collect(struct peer_port *port, uint64_t epoch, uint64_t bundle, uint64_t workers,
                            uint64_t until_ns, struct aggregator_update *out)
{
	const struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};

	pthread_mutex_lock(&port->lock);
	while ((present(port, epoch, bundle) & workers) != workers) {
		if (pthread_cond_timedwait(&port->came, &port->lock, &until) == ETIMEDOUT)
			break;
	}
	uint32_t count = take_kept(port, present(port, epoch, bundle) & workers, out);
	pthread_mutex_unlock(&port->lock);
	return count;
}
