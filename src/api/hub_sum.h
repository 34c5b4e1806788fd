/*
 * hub_sum.h - a worker's part in sums of updates: as a member it sends its update to an aggregator, as the aggregator
 * it adds the updates of others to its own. Private to src/api.
 */
#ifndef API_HUB_SUM_H
#define API_HUB_SUM_H

#include "fabric/worker/aggregator.h"
#include "fabric/worker/sched_link.h"
#include "hub/worker/hub_link.h"

/*
 * NULL: this job's updates go by themselves, as its optimizer is not plain SGD without decay, or tensors are not
 * float32; or there is no port.
 */
struct aggregator *api_sum_open(struct hub_link *link);

/*
 * As hub_link_update(), with a decision that names a sum. full has what belongs to the update and to its position.
 * out->why GATE_BROKEN: the sum failed, and the update may be given again. out->took_ns: of a member, until the
 * aggregator had it.
 */
enum esp_status api_sum_update(struct hub_link *link, struct aggregator *aggregator,
                               const struct sched_link_decision *decision, struct hub_update *full,
                               struct hub_update_result *out, struct error *err);

#endif
