/*
 * aggregator.h - where a worker takes updates of other workers of its job, to add them to its own.
 *
 * A listening socket and the thread "esp-aggregate", which takes whole updates and keeps the latest of each worker
 * until it is collected. A connection proves the job's key and names its worker; an update is kept only if its checksum
 * is right. Any thread may collect, one at a time.
 */
#ifndef FABRIC_WORKER_AGGREGATOR_H
#define FABRIC_WORKER_AGGREGATOR_H

#include "base/error.h"
#include "hub/control/ticket.h"

struct aggregator;

struct aggregator_config {
	const struct ticket *ticket; /* with a scheduler; copied */
	uint32_t worker;
	uint64_t bytes;              /* of an update: others are refused */
};

/* Where the scheduler is on this machine only this machine can connect. ESP_ENOMEM, ESP_ELIMIT, ESP_ELINK: no port. */
ESP_CHECKED enum esp_status aggregator_open(const struct aggregator_config *config, struct aggregator **out,
                                            struct error *err);
/* Workers that send are cut off. NULL is fine. */
void aggregator_close(struct aggregator *aggregator);
uint16_t aggregator_port(const struct aggregator *aggregator);

/* An update that came; its memory is the caller's to free(). */
struct aggregator_update {
	uint32_t worker;
	float *data;
};

/*
 * Waits until the updates of these workers (a bit set) for this sum are there, but not beyond until_ns. Returns how
 * many are, by number of the worker; updates for former sums are forgotten.
 */
uint32_t aggregator_collect(struct aggregator *aggregator, uint64_t epoch, uint64_t bundle, uint64_t workers,
                            uint64_t until_ns, struct aggregator_update *out);

#endif
