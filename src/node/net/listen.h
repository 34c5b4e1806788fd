/*
 * listen.h - the listening sockets of a node, and the addresses, port and host in its node info.
 *
 * Opens sockets and reads facts of the host; blocks nowhere. Any thread.
 */
#ifndef NODE_NET_LISTEN_H
#define NODE_NET_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "node/net/interface.h"
#include "wire/rendezvous_msg.h"

struct listen_config {
	bool loopback_only;             /* peers are on this machine only */
	struct interface_filter filter; /* not empty: only addresses that it admits are bound */
	enum conf_family family;
	struct conf_range port;         /* the first free one; 0: any */
	uint32_t segment_bytes;         /* TCP's maximum segment size; 0: the interfaces' own */
};

#define LISTEN_MOST NODE_ADDRESSES
#define PORT_BACKLOG 1024 /* the kernel uses less if net.core.somaxconn is lower */

/* Listening sockets (non-blocking, close-on-exec) at one port. */
struct listener {
	uint32_t count;
	int fds[LISTEN_MOST];
	struct interfaces interfaces; /* that the node info's addresses belong to; empty: loopback only */
};

/*
 * Opens the sockets, and fills in port and addresses of the node info. Without a filter they accept on all
 * addresses of the host, so an address that turns out to lead to the leader can be added later
 * (listen_prefer_address). ESP_EINVAL: no interface fits; ESP_ELINK: no port is free. The caller calls
 * listener_close(), also after a failure.
 */
ESP_CHECKED enum esp_status listen_open(const struct listen_config *config, struct listener *out,
                                        struct node_info *info, struct error *err);
/* Accepts a zeroed struct. */
void listener_close(struct listener *listener);

/*
 * Opens one such socket and writes the port into the name; port 0: chosen by the kernel. Returns -1 and errno
 * on failure. both_families: IPv6's "any" takes IPv4 as well; segment_bytes: as in struct listen_config.
 */
int listen_at(struct sockaddr_storage *name, uint16_t port, bool both_families, uint32_t segment_bytes);
/* The port that a socket is bound to; 0: none. */
uint16_t listen_port(int fd);

/* The host's name, cut to the room of a node info; "?" if it cannot be found out. Returns out. */
const char *host_info_name(char out[NODE_INFO_HOST_NAME]);

/* Fills in host id, host name, pid and cores of this process. */
void host_info_describe(struct node_info *info);

/*
 * Moves an address to the front, or adds it, as it is known to work: it is this end's address of a connection
 * to the leader. Loopback is ignored: it says nothing about other hosts.
 */
void listen_prefer_address(struct node_info *info, const struct sockaddr *address);

#endif
