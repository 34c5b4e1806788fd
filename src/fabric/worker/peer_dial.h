/*
 * peer_dial.h - a connection to the port of another worker of the job (fabric/worker/peer_port.h). Does I/O and blocks
 * the caller, up to a deadline.
 */
#ifndef FABRIC_WORKER_PEER_DIAL_H
#define FABRIC_WORKER_PEER_DIAL_H

#include "base/error.h"
#include "base/pace.h"
#include "hub/control/ticket.h"
#include "wire/fabric_msg.h"

struct peer_dial {
	const struct ticket *ticket;
	uint32_t worker, to;       /* the worker that dials, and the one that is dialled */
	const uint8_t *host;       /* FABRIC_HOST bytes, as the scheduler has told */
	uint16_t port;
	uint64_t until_ns;
};

/* ESP_ELINK: it has no address, or is not reached; others as of hub_dial(). */
ESP_CHECKED enum esp_status peer_dial(const struct peer_dial *dial, int *out_fd, struct error *err);
/* At this pace. ESP_ELINK: it has closed the connection; ESP_ETIMEOUT. */
ESP_CHECKED enum esp_status peer_put(int fd, const void *data, uint64_t bytes, struct pace *pace, uint64_t until_ns,
                                     struct error *err);
/* A message. ESP_ELINK, ESP_ETIMEOUT, ESP_ECORRUPT. */
ESP_CHECKED enum esp_status peer_take(int fd, uint64_t until_ns, struct fabric_msg *out, struct error *err);

#endif
