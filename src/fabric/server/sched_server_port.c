/*
 * sched_server_port.c - where a scheduler listens. As many connections are accepted as the accept limit admits.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "fabric/server/sched_server_conn.h"
#include "node/net/listen.h"
#include "node/net/resolve.h"

#define ACCEPTS 64 /* of one socket in one turn */
#define CONNECTIONS_AT_ONCE 4096u
#define RESOLVE_PATIENCE (10 * NS_PER_S)
#define FULL_PAUSE (10 * NS_PER_MS) /* without a free descriptor */

static void pause_ports(struct sched_server *server, bool pauses)
{
	if (server->ports_paused == pauses)
		return;
	server->ports_paused = pauses;
	for (uint32_t i = 0; i < server->port_count; i++)
		loop_change(&server->loop, &server->ports[i].watched, pauses ? 0u : EPOLLIN);
}

/* True: the backlog is empty, or no descriptor is free. */
static bool accept_some(struct sched_server *server, struct sched_server_port *port)
{
	int on = 1;

	for (unsigned i = 0; i < ACCEPTS; i++) {
		uint64_t now = loop_now(&server->loop);

		if (!accept_limit_admits(&server->limit, now))
			return false;
		int fd = accept4(port->watched.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && errno == EINTR)
			continue;
		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			server->full_until_ns = now + FULL_PAUSE;
		if (fd < 0)
			return true;
		accept_limit_take(&server->limit, now);
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		sched_server_conn_accept(server, fd);
	}
	return false;
}

static void on_ready(struct loop_fd *watched, uint32_t events)
{
	struct sched_server_port *port = (struct sched_server_port *)(void *)watched;

	(void)events;
	accept_some(port->server, port);
}

uint64_t sched_server_port_turn(struct sched_server *server, uint64_t now_ns)
{
	uint64_t when = accept_limit_due_ns(&server->limit, now_ns);
	bool is_empty = true;

	if (server->full_until_ns > now_ns) {
		pause_ports(server, true);
		return server->full_until_ns;
	}
	server->full_until_ns = 0;
	pause_ports(server, when != UINT64_MAX);
	if (when > now_ns)
		return when;
	for (uint32_t i = 0; i < server->port_count; i++)
		is_empty &= accept_some(server, &server->ports[i]);
	if (is_empty)
		accept_limit_empty(&server->limit);
	return now_ns;
}

static enum esp_status listen_on(struct sched_server *server, struct sockaddr_storage *name, struct error *err)
{
	struct sched_server_port *port = &server->ports[server->port_count];
	int fd = listen_at(name, server->config.listen.port, true, 0);
	char text[ADDRESS_TEXT];

	if (fd < 0)
		return error_set(err, ESP_ELINK, "cannot listen at %s: %s", address_format(&server->config.listen, text),
		                 errno == EADDRINUSE ? "another process listens at this port" : strerror(errno));
	*port = (struct sched_server_port){.watched.ready = on_ready, .server = server};
	enum esp_status status = loop_add(&server->loop, &port->watched, fd, EPOLLIN, err);
	if (status != ESP_OK)
		close(fd);
	else
		server->port_count++;
	return status;
}

enum esp_status sched_server_port_open(struct sched_server *server, struct error *err)
{
	struct resolved resolved;
	enum esp_status status = resolve(&server->config.listen, clock_now_ns() + RESOLVE_PATIENCE, &resolved, err);

	for (uint32_t i = 0; status == ESP_OK && i < resolved.count && i < SCHED_SERVER_PORTS; i++)
		status = listen_on(server, &resolved.addresses[i].storage, err);
	accept_limit_init(&server->limit, CONNECTIONS_AT_ONCE, loop_now(&server->loop));
	accept_limit_settle(&server->limit);
	return status;
}

void sched_server_port_close(struct sched_server *server)
{
	for (uint32_t i = 0; i < server->port_count; i++) {
		int fd = server->ports[i].watched.fd;

		loop_remove(&server->loop, &server->ports[i].watched);
		close(fd);
	}
	server->port_count = 0;
}
