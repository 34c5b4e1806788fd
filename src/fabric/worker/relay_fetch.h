/*
 * relay_fetch.h - a model that comes from another worker (fabric/worker/relay.h). Does I/O and blocks the caller, up to
 * a deadline.
 */
#ifndef FABRIC_WORKER_RELAY_FETCH_H
#define FABRIC_WORKER_RELAY_FETCH_H

#include "fabric/worker/relay.h"
#include "fabric/worker/sched_link.h"

struct relay_fetching {
	const struct ticket *ticket;
	uint32_t worker;
	const struct sched_link_model *decision; /* whose source is a worker */
	struct peer_port *port;
	struct relay_model *model;               /* where it goes, and leaves again */
	uint64_t bytes, until_ns;
};

/*
 * ESP_OK: all of it is there, with the version that the source has told; the caller finishes the model. Otherwise the
 * source is gone, silent for some seconds, or has sent something else: the model is to be read from the hub.
 */
ESP_CHECKED enum esp_status relay_fetch(const struct relay_fetching *fetching, uint64_t *out_version,
                                        struct error *err);

#endif
