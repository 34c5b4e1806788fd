/*
 * leader_listen.h - the leader's listening sockets, and accepting connections one by one. The joining thread's.
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
 * Called each time another process is found at the port: ESP_PENDING waits, another status (with a text in
 * *err) gives up. found: the addresses of that process.
 */
typedef enum esp_status leader_listen_taken_fn(void *context, const struct resolved *found, struct error *err);

struct leader_listen_options {
	uint32_t backlog;      /* 0: default */
	leader_listen_taken_fn *taken; /* NULL: waits */
	void *context;
};

/*
 * Listens at the address. A name may mean another address on its own host than elsewhere (127.0.1.1 in
 * /etc/hosts, an address in front of a translator): if none of its addresses can be reached from other hosts,
 * the leader listens on all addresses of this host. Waits a little for a port that is in use, as an earlier
 * epoch of the job may still be closing it. ESP_ELINK.
 */
ESP_CHECKED enum esp_status leader_listen_open(struct leader_listen *sockets, const struct address *address,
                                       const struct leader_listen_options *options, uint64_t deadline_ns,
                                               struct error *err);

/* Listens on all addresses of this host, at a port that the kernel chooses. ESP_ELINK. */
ESP_CHECKED enum esp_status leader_listen_open_anywhere(struct leader_listen *sockets,
                                                        const struct leader_listen_options *options, uint16_t *out_port,
                                                        struct error *err);

/* Takes one non-blocking socket that listens already. */
void leader_listen_take(struct leader_listen *sockets, int fd);

/* The next connection, non-blocking: -1 if there is none; -2 if there is one, but no descriptor or memory for it. */
int leader_listen_accept(struct leader_listen *sockets);

void leader_listen_close(struct leader_listen *sockets);

#endif
