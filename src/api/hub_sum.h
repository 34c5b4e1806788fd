/*
 * hub_sum.h - a worker's part in sums of updates: as a member it sends its update to an aggregator, as the aggregator
 * it adds the updates of others to its own. Private to src/api.
 */
#ifndef API_HUB_SUM_H
#define API_HUB_SUM_H

#include "fabric/worker/peer_port.h"
#include "fabric/worker/sched_link.h"
#include "hub/worker/hub_link.h"

/*
 * As hub_link_update(), with a decision that names a sum. full has what belongs to the update and to its position.
 * out->why GATE_BROKEN: the sum failed, and the update may be given again. out->took_ns: of a member, until the
 * aggregator had it.
 */
enum esp_status api_sum_update(struct hub_link *link, struct peer_port *port,
                               const struct sched_link_decision *decision, struct hub_update *full,
                               struct hub_update_result *out, struct error *err);

#endif
