/*
 * aggregator.h - updates of other workers, and sums of them, that this worker adds to its own.
 *
 *     a group:   each member's whole update, if its checksum is right
 *     a chain:   a stream, which is added and passed on while it comes; its checksum is behind it
 *
 * The latest one of each worker is kept until it is collected. Any thread may collect, one at a time.
 */
#ifndef FABRIC_WORKER_AGGREGATOR_H
#define FABRIC_WORKER_AGGREGATOR_H

#include "fabric/worker/peer_port.h"

struct aggregator_input;

struct aggregator_update {
	uint32_t worker;
	uint64_t members;   /* of a stream: whose updates it has, as a bit set */
	const float *data;  /* of a stream: what has come is there */
	struct aggregator_input *input;
};

/*
 * Waits until the updates of these workers (a bit set) for this sum are there, but not beyond until_ns. Returns how
 * many are, by number of the worker; updates for former sums are forgotten. Each is to be put.
 */
uint32_t aggregator_collect(struct peer_port *port, uint64_t epoch, uint64_t bundle, uint64_t workers,
                            uint64_t until_ns, struct aggregator_update *out);
/* The same of streams, which have begun. Whichever they are: `most` of them. */
uint32_t aggregator_await(struct peer_port *port, uint64_t epoch, uint64_t bundle, uint32_t most, uint64_t until_ns,
                          struct aggregator_update *out);
void aggregator_put(struct peer_port *port, struct aggregator_update *update);

/* Waits until more than `at` bytes of a stream are there. Returns how many; 0: it has failed, or until_ns has come. */
uint64_t aggregator_await_bytes(struct peer_port *port, const struct aggregator_update *update, uint64_t at,
                                uint64_t until_ns);
/* Waits until its checksum is there, and right. False as above. */
bool aggregator_await_end(struct peer_port *port, const struct aggregator_update *update, uint64_t until_ns);

#endif
