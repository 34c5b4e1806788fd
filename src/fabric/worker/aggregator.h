/*
 * aggregator.h - updates of other workers that this one adds to its own.
 *
 * The latest whole update of each worker is kept until it is collected, if its checksum is right. Any thread may
 * collect, one at a time.
 */
#ifndef FABRIC_WORKER_AGGREGATOR_H
#define FABRIC_WORKER_AGGREGATOR_H

#include "fabric/worker/peer_port.h"

/* An update that came; its memory is the caller's to free(). */
struct aggregator_update {
	uint32_t worker;
	float *data;
};

/*
 * Waits until the updates of these workers (a bit set) for this sum are there, but not beyond until_ns. Returns how
 * many are, by number of the worker; updates for former sums are forgotten.
 */
uint32_t aggregator_collect(struct peer_port *port, uint64_t epoch, uint64_t bundle, uint64_t workers,
                            uint64_t until_ns, struct aggregator_update *out);

#endif
