/*
 * resolve.h - the addresses behind a name, within a deadline.
 *
 * The resolver of libc cannot be told to hurry, so a name is looked up in a thread of its
 * own; if that takes too long the thread is left to itself and ends when it ends.
 */
#ifndef NODE_NET_RESOLVE_H
#define NODE_NET_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "node/net/address.h"

#define RESOLVE_MAX 8u /* addresses of one name that are tried */

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

/* 127.x.y.z, ::1, also when mapped. */
bool resolve_is_loopback(const struct sockaddr *address);

#endif
