/*
 * hub_chain.h - a worker's part in a chain: it adds its update to the stream that comes to it, and passes it on, chunk
 * by chunk; the last worker to the hub. Private to src/api.
 */
#ifndef API_HUB_CHAIN_H
#define API_HUB_CHAIN_H

#include "fabric/worker/peer_port.h"
#include "fabric/worker/sched_link.h"
#include "hub/worker/hub_link.h"

/*
 * As hub_link_update(), with a decision that names a chain. full has what belongs to the update and to its position.
 * out->why GATE_BROKEN: the chain has lost a worker, and the update may be given again. out->took_ns: of this worker's
 * own part, without the time in which it waited for others.
 */
enum esp_status api_chain_update(struct hub_link *link, struct peer_port *port,
                                 const struct sched_link_decision *decision, struct hub_update *full,
                                 struct hub_update_result *out, struct error *err);

#endif
