#include "node/net/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/net/resolve.h"

#define TRIES_MOST 64 /* ports chosen by the kernel until one is free on several addresses */

void listen_prefer_address(struct node_info *info, const struct sockaddr *address)
{
	uint32_t at = 0;
	struct node_address first;
	if (!node_address_from(address, &first) || node_address_is_loopback(&first))
		return;
	while (at < info->address_count && !node_address_same(&info->addresses[at], &first))
		at++;
	if (at == info->address_count) {
		/* A link-local address is of use on the interfaces that were chosen for it only. */
		if (info->is_complete || node_address_is_link_local(&first))
			return;
		if (info->address_count < NODE_ADDRESSES)
			info->address_count++;
		else
			at--; /* the last one makes room */
	} else {
		first = info->addresses[at];
	}
	memmove(info->addresses + 1, info->addresses, at * sizeof(first));
	info->addresses[0] = first;
}

void listener_close(struct listener *listener)
{
	for (uint32_t i = 0; i < listener->count; i++)
		close(listener->fds[i]);
	listener->count = 0;
}

/* Addresses to bind: up to LISTEN_MOST, without the port. */
struct places {
	uint32_t count;
	struct sockaddr_storage names[LISTEN_MOST];
	bool both_families; /* names[0] is IPv6 and takes IPv4 as well */
};

static uint16_t *port_in(struct sockaddr_storage *name)
{
	return name->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)name)->sin6_port
	       : &((struct sockaddr_in *)name)->sin_port;
}

int listen_at(struct sockaddr_storage *name, uint16_t port, bool both_families, uint32_t segment_bytes)
{
	socklen_t length = name->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	int on = 1, v6_only = !both_families, segment = (int)segment_bytes;
	int fd = socket(name->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (port != 0) /* connections of an earlier job may be in TIME_WAIT */
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (name->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
	if (segment > 0) /* accepted sockets inherit it and announce it to their peers */
		setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
	*port_in(name) = htons(port);
	if (bind(fd, (const struct sockaddr *)name, length) == 0 && listen(fd, PORT_BACKLOG) == 0)
		return fd;
	int why = errno;
	close(fd);
	errno = why;
	return -1;
}

uint16_t listen_port(int fd)
{
	struct sockaddr_storage name;
	socklen_t length = sizeof(name);
	memset(&name, 0, sizeof(name));
	return getsockname(fd, (struct sockaddr *)&name, &length) == 0 ? ntohs(*port_in(&name)) : 0;
}

/* Binds all addresses at one port; 0: chosen by the kernel. Returns 0, or errno with nothing left open. */
static int listen_at_all(struct places *places, uint16_t port, uint32_t segment_bytes, struct listener *out)
{
	for (uint32_t i = 0; i < places->count; i++) {
		int fd = listen_at(&places->names[i], port, places->both_families, segment_bytes);
		if (fd < 0) {
			int why = errno;
			listener_close(out);
			return why;
		}
		out->fds[out->count++] = fd;
		port = listen_port(fd);
	}
	return 0;
}

static enum esp_status no_port(const struct conf_range *port, int why, struct error *err)
{
	if (port->first == 0)
		return error_set(err, ESP_ELINK, "cannot listen on any port: %s", strerror(why));
	if (why == EADDRINUSE && port->first == port->last)
		return error_set(err, ESP_ELINK, "port %u is taken on this host: each rank of a host needs one, so with "
		                                 "several of them set a range, as in port=%u-%u", port->first, port->first,
		                 port->first <= UINT16_MAX - 15 ? port->first + 15 : UINT16_MAX);
	if (why == EADDRINUSE)
		return error_set(err, ESP_ELINK, "all ports from %u to %u are taken on this host: each rank of a host needs "
		                                 "one, so set a larger range", port->first, port->last);
	return error_set(err, ESP_ELINK, "cannot listen on port %u: %s", port->first, strerror(why));
}

static int try_ports(const struct listen_config *config, struct places *places, struct listener *out)
{
	int why = EADDRINUSE;
	if (config->port.first == 0) {
		for (int i = 0; i < TRIES_MOST && why == EADDRINUSE; i++)
			why = listen_at_all(places, 0, config->segment_bytes, out);
	} else {
		for (uint32_t port = config->port.first; port <= config->port.last && why == EADDRINUSE; port++)
			why = listen_at_all(places, (uint16_t)port, config->segment_bytes, out);
	}
	return why;
}

static enum esp_status find_port(const struct listen_config *config, struct places *places, struct listener *out,
                                 struct error *err)
{
	int why = try_ports(config, places, out);
	/* the kernel has IPv6, but this host has it disabled */
	if (places->both_families && (why == EADDRNOTAVAIL || why == EAFNOSUPPORT)) {
		*places = (struct places){.count = 1, .names[0].ss_family = AF_INET};
		why = try_ports(config, places, out);
	}
	return why == 0 ? ESP_OK : no_port(&config->port, why, err);
}

/* One socket for both families, where the kernel has IPv6. */
static void place_everywhere(enum conf_family family, struct places *places)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&places->names[0];
	int fd = family == CONF_FAMILY_IPV4 ? -1 : socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has_v6 = fd >= 0;
	if (has_v6)
		close(fd);
	places->count = 1;
	places->names[0] = (struct sockaddr_storage){.ss_family = has_v6 ? AF_INET6 : AF_INET};
	places->both_families = has_v6 && family == CONF_FAMILY_ANY;
	if (has_v6)
		v6->sin6_addr = in6addr_any;
}

static void place_on_loopback(enum conf_family family, struct places *places, struct node_info *info)
{
	/* No socket takes both loopbacks, and every host has IPv4's. */
	static const struct node_address v4 = {NODE_IPV4, {127, 0, 0, 1}, 8, NODE_NO_INTERFACE};
	static const struct node_address v6 = {NODE_IPV6, {[15] = 1}, 128, NODE_NO_INTERFACE};
	info->addresses[0] = family == CONF_FAMILY_IPV6 ? v6 : v4;
	info->address_count = places->count = 1;
	node_address_to(&info->addresses[0], 0, 0, &places->names[0]);
}

static enum esp_status place_on_network(const struct listen_config *config, struct places *places, struct listener *out,
                                        struct node_info *info, struct error *err)
{
	struct interfaces all;
	enum esp_status status = interfaces_list(&all, err);
	if (status == ESP_OK)
		status = interfaces_choose(&all, &config->filter, config->family, &out->interfaces, err);
	if (status != ESP_OK)
		return status;
	info->address_count = out->interfaces.count;
	info->is_complete = config->filter.count > 0 || config->family != CONF_FAMILY_ANY;
	for (uint32_t i = 0; i < out->interfaces.count; i++) {
		const struct interface *at = &out->interfaces.list[i];
		info->addresses[i] = at->address;
		node_address_to(&at->address, 0, at->index, &places->names[i]);
	}
	places->count = out->interfaces.count;
	if (config->filter.count == 0)
		place_everywhere(config->family, places);
	return ESP_OK;
}

enum esp_status listen_open(const struct listen_config *config, struct listener *out, struct node_info *info,
                            struct error *err)
{
	struct places places = {0};
	enum esp_status status = ESP_OK;
	*out = (struct listener){0};
	if (config->loopback_only)
		place_on_loopback(config->family, &places, info);
	else
		status = place_on_network(config, &places, out, info, err);
	if (status == ESP_OK)
		status = find_port(config, &places, out, err);
	if (status == ESP_OK)
		info->port = listen_port(out->fds[0]);
	return status;
}
