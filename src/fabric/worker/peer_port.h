/*
 * peer_port.h - where a worker is reached by other workers of its job.
 *
 *     peer_port ─┬─ aggregator   takes updates of others, to add them to its own
 *                └─ relay        gives the model to others
 *
 * A listening socket and the thread "esp-peers". A connection proves the job's key and names its worker, says what it
 * wants, and ends with it.
 */
#ifndef FABRIC_WORKER_PEER_PORT_H
#define FABRIC_WORKER_PEER_PORT_H

#include <stdbool.h>

#include "base/error.h"
#include "hub/control/ticket.h"

struct peer_port;

struct peer_port_config {
	const struct ticket *ticket; /* with a scheduler; copied */
	uint32_t worker;
	uint64_t bytes;              /* of the model, and of an update: others are refused */
	bool takes_sums;             /* updates of others are taken: all of float32 */
};

/* Where the scheduler is on this machine only this machine can connect. ESP_ENOMEM, ESP_ELIMIT, ESP_ELINK: no port. */
ESP_CHECKED enum esp_status peer_port_open(const struct peer_port_config *config, struct peer_port **out,
                                           struct error *err);
/* Workers that send or fetch are cut off. NULL is fine. */
void peer_port_close(struct peer_port *port);
uint16_t peer_port_number(const struct peer_port *port);

#endif
