/*
 * hub_config.h - how a parameter hub is opened: plain data.
 */
#ifndef HUB_SERVER_HUB_CONFIG_H
#define HUB_SERVER_HUB_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "node/auth/handshake.h"
#include "node/net/address.h"

struct hub_config {
	struct address listen;
	uint8_t key[HANDSHAKE_KEY_BYTES];
	uint32_t lanes;        /* 1 to LAYOUT_LANES_MOST */
	bool is_apart;         /* reads no memory of workers on its machine: their gradients come over the loopback */
	bool pins;             /* each lane's thread to a core of its own, of those that the process may use */
	uint64_t memory_bytes; /* of all models together */
	uint32_t jobs;         /* at most */
	uint64_t idle_ns;      /* a job without workers for so long is removed; 0: never */
	uint64_t silence_ns;   /* a worker that has not been heard for so long is considered dead; 0: SILENCE_MOST */
	const char *version;   /* of the program, for metrics. Borrowed */
	const char *metrics;   /* path of a socket for Prometheus; NULL: none. Borrowed */
	void (*log)(void *context, const char *line); /* NULL: silent */
	void *log_context;
};

#endif
