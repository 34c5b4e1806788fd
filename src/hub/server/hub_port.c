#include "hub/server/hub_port.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "hub/server/hub_conn.h"
#include "node/net/listen.h"
#include "node/net/resolve.h"

#define ACCEPTS 64                        /* of one socket in one turn */
#define LOCKED_BACKLOG 32                 /* as of ranks: node/control/accept.c */
#define CONNECTIONS_AT_ONCE 4096u         /* of workers of many jobs that start together */
#define RESOLVE_PATIENCE (10 * NS_PER_S)
#define FULL_PAUSE (10 * NS_PER_MS)       /* without a free descriptor */

static void pause_ports(struct hub *hub, bool pauses)
{
	if (hub->ports_paused == pauses)
		return;
	hub->ports_paused = pauses;
	for (uint32_t i = 0; i < hub->port_count; i++) {
		loop_change(&hub->loop, &hub->ports[i].watched, pauses ? 0u : EPOLLIN);
		(void)listen(hub->ports[i].watched.fd, pauses ? LOCKED_BACKLOG : PORT_BACKLOG);
	}
}

/* "10.0.0.7:4242" */
static void format_peer(const struct sockaddr *name, socklen_t length, char *text, size_t room)
{
	char host[48], port[8];

	if (getnameinfo(name, length, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(text, room, "%s:%s", host, port);
	else
		snprintf(text, room, "an unknown address");
}

static void take(struct hub *hub, int fd, const struct sockaddr *name, socklen_t length)
{
	char peer[64];
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	format_peer(name, length, peer, sizeof(peer));
	hub_conn_accept(hub, fd, resolve_is_loopback(name), peer);
}

/* True: the backlog is empty. */
static bool accept_some(struct hub *hub, struct hub_port *port)
{
	for (unsigned i = 0; i < ACCEPTS; i++) {
		union resolve_address name;
		socklen_t length = sizeof(name);
		uint64_t now = loop_now(&hub->loop);

		if (!accept_limit_admits(&hub->limit, now))
			return false;
		int fd = accept4(port->watched.fd, &name.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && errno == EINTR)
			continue;
		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			hub->full_until_ns = now + FULL_PAUSE;
		if (fd < 0)
			return true;
		accept_limit_take(&hub->limit, now);
		take(hub, fd, &name.any, length);
	}
	return false;
}

static void on_ready(struct loop_fd *watched, uint32_t events)
{
	struct hub_port *port = (struct hub_port *)(void *)watched;

	(void)events;
	accept_some(port->hub, port);
}

uint64_t hub_port_turn(struct hub *hub, uint64_t now_ns)
{
	uint64_t when = accept_limit_due_ns(&hub->limit, now_ns);

	if (hub->full_until_ns > now_ns) {
		pause_ports(hub, true);
		return hub->full_until_ns;
	}
	hub->full_until_ns = 0;
	pause_ports(hub, when != UINT64_MAX);
	if (when > now_ns)
		return when;
	bool is_empty = true;
	for (uint32_t i = 0; i < hub->port_count; i++)
		is_empty &= accept_some(hub, &hub->ports[i]);
	if (is_empty)
		accept_limit_empty(&hub->limit);
	return now_ns;
}

static enum esp_status listen_on(struct hub *hub, struct sockaddr_storage *name, struct error *err)
{
	struct hub_port *port = &hub->ports[hub->port_count];
	int fd = listen_at(name, hub->config.listen.port, true, 0);
	char text[ADDRESS_TEXT];

	if (fd < 0)
		return error_set(err, ESP_ELINK, "cannot listen at %s: %s", address_format(&hub->config.listen, text),
		                 errno == EADDRINUSE ? "another process listens at this port" : strerror(errno));
	*port = (struct hub_port){.watched.ready = on_ready, .hub = hub};
	enum esp_status status = loop_add(&hub->loop, &port->watched, fd, EPOLLIN, err);
	if (status != ESP_OK)
		close(fd);
	else
		hub->port_count++;
	return status;
}

enum esp_status hub_port_open(struct hub *hub, struct error *err)
{
	struct resolved resolved;
	enum esp_status status = resolve(&hub->config.listen, clock_now_ns() + RESOLVE_PATIENCE, &resolved, err);

	for (uint32_t i = 0; status == ESP_OK && i < resolved.count && i < HUB_PORTS; i++)
		status = listen_on(hub, &resolved.addresses[i].storage, err);
	accept_limit_init(&hub->limit, CONNECTIONS_AT_ONCE, loop_now(&hub->loop));
	accept_limit_settle(&hub->limit);
	return status;
}

void hub_port_close(struct hub *hub)
{
	for (uint32_t i = 0; i < hub->port_count; i++) {
		int fd = hub->ports[i].watched.fd;

		loop_remove(&hub->loop, &hub->ports[i].watched);
		close(fd);
	}
	hub->port_count = 0;
}
