/*
 * listen.h - the one port of a rank, where all others reach it, and what its card says about that.
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
	bool loopback_only;             /* nobody outside of this machine can connect */
	struct interface_filter filter; /* with one, only the addresses that it lets through can be reached */
	enum conf_family family;
	struct conf_range port;         /* the first free one; 0: any                 */
	uint32_t segment_bytes;         /* most that TCP puts into one packet; 0: what the interfaces take */
};

#define LISTEN_MOST NODE_ADDRESSES
#define PORT_BACKLOG 1024 /* the kernel takes less if it is set to (net.core.somaxconn) */

/* Listening sockets (non-blocking, close-on-exec) with one port in common. */
struct listener {
	uint32_t count;
	int fds[LISTEN_MOST];
	struct interfaces interfaces; /* what the card's addresses belong to; empty: loopback only */
};

/*
 * Fills in the port and addresses of the card. Without a filter the socket listens on all addresses of the host, so an address that turns
 * out to be the way to the leader can be added to the card. ESP_EINVAL: no interface fits; ESP_ELINK: no port is free. The caller calls listener_close(), also after a failure.
 */
ESP_CHECKED enum esp_status listen_open(const struct listen_config *config, struct listener *out, struct node_info *card,
                                         struct error *err);
/* Accepts a zeroed struct. */
void listener_close(struct listener *listener);

/*
 * One such socket at one address and port, which is written into the name; 0: one that the kernel chooses. Or -1, and errno.
 * both_families: IPv6's "any" takes IPv4 as well; segment_bytes: as in struct listen_config.
 */
int listen_at(struct sockaddr_storage *name, uint16_t port, bool both_families, uint32_t segment_bytes);
/* Where a socket is bound; 0: nowhere. */
uint16_t listen_port(int fd);

/* What this host is called, cut off where it is longer than a card has room for; "?" if that cannot be found out. Returns out. */
const char *group_host_name(char out[NODE_INFO_HOST_NAME]);

/* Fills in who and where this process is: host id, host name, pid, cores. */
void host_info_describe(struct node_info *card);

/* Puts an address first, as it is known to work. Loopback is passed over: it is only known to work here. */
void listen_prefer_address(struct node_info *card, const struct sockaddr *address);

#endif
