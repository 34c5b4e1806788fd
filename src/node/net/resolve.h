/*
 * resolve.h - the addresses of a name, within a deadline. Blocks the caller up to the deadline.
 *
 * libc's resolver has no deadline, so a name is looked up by a thread of its own; if that takes too long the
 * thread is detached from the caller and ends on its own.
 */
#ifndef NODE_NET_RESOLVE_H
#define NODE_NET_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "node/net/address.h"

#define RESOLVE_MAX 8u /* most addresses of one name that are returned */

union resolve_address {
	struct sockaddr any;
	struct sockaddr_storage storage;
};

struct resolved {
	uint32_t count;
	union resolve_address addresses[RESOLVE_MAX]; /* with the port, in the order of the resolver */
	socklen_t lengths[RESOLVE_MAX];
};

/* ESP_ELINK: there is no such name now; ESP_ETIMEOUT; ESP_ENOMEM. */
ESP_CHECKED enum esp_status resolve(const struct address *address, uint64_t deadline_ns, struct resolved *out,
                                    struct error *err);

/* True for 127.x.y.z and ::1, also when IPv4 is mapped into IPv6. */
bool resolve_is_loopback(const struct sockaddr *address);

#endif
