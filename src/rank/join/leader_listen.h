/*
 * leader_listen.h - the leader's listening sockets: where they are bound, and letting people in one by one.
 */
#ifndef RANK_JOIN_LEADER_LISTEN_H
#define RANK_JOIN_LEADER_LISTEN_H

#include <stdint.h>

#include "base/error.h"
#include "node/net/address.h"
#include "node/net/resolve.h"

#define LEADER_LISTEN_SOCKETS (RESOLVE_MAX + 1u)

struct leader_listen {
	uint32_t count;
	int fds[LEADER_LISTEN_SOCKETS];
};

/*
 * Called each time that somebody else is found at the port: ESP_PENDING waits, anything else (with a text in *err) gives up.
 * found: where that somebody listens.
 */
typedef enum esp_status leader_listen_taken_fn(void *context, const struct resolved *found, struct error *err);

struct leader_listen_options {
	uint32_t backlog;      /* 0: as is usual */
	leader_listen_taken_fn *taken; /* NULL: waits */
	void *context;
};

/*
 * Listens where the address says. A name may mean something else on its own host than on others
 * (127.0.1.1 in /etc/hosts, an address in front of a translator): if none of its addresses
 * can be reached from outside, all addresses of this host are listened on. A port that is taken is
 * waited for a little, as an earlier start of the job may still be leaving. ESP_ELINK.
 */
ESP_CHECKED enum esp_status leader_listen_open(struct leader_listen *sockets, const struct address *address,
                                       const struct leader_listen_options *options, uint64_t deadline_ns, struct error *err);

/* Listens on all addresses of this host, at a port that the kernel chooses. ESP_ELINK. */
ESP_CHECKED enum esp_status leader_listen_open_anywhere(struct leader_listen *sockets, const struct leader_listen_options *options,
                                                uint16_t *out_port, struct error *err);

/* One socket that listens already, and does not block; it is the listen's now. */
void leader_listen_take(struct leader_listen *sockets, int fd);

/* The next connection, non-blocking: -1 if there is none; -2 if there is, but no descriptor or memory for it. */
int leader_listen_accept(struct leader_listen *sockets);

void leader_listen_close(struct leader_listen *sockets);

#endif
