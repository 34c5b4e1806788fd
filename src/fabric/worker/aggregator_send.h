/*
 * aggregator_send.h - an update on its way to its aggregator. Does I/O and blocks the caller, up to a deadline.
 */
#ifndef FABRIC_WORKER_AGGREGATOR_SEND_H
#define FABRIC_WORKER_AGGREGATOR_SEND_H

#include "fabric/worker/sched_link.h"

/* A part of an update. */
struct aggregator_part {
	const void *data;
	uint64_t bytes;
};

struct aggregator_sending {
	const struct ticket *ticket;
	uint32_t worker;
	const struct sched_link_decision *decision; /* of a member */
	const struct aggregator_part *parts;
	uint32_t count;
	uint64_t until_ns;
};

/*
 * Sends it at the decision's rate. ESP_OK: the aggregator has all of it; *out_took_ns: from the connection on.
 * Otherwise the aggregator may have it or not; the hub tells how the update ends.
 */
ESP_CHECKED enum esp_status aggregator_send(const struct aggregator_sending *sending, uint64_t *out_took_ns,
                                            struct error *err);

#endif
