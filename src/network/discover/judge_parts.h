/*
 * judge_parts.h - steps from a survey to groups (judge_groups.h). Pure. Private to src/network/discover.
 */
#ifndef NETWORK_DISCOVER_JUDGE_PARTS_H
#define NETWORK_DISCOVER_JUDGE_PARTS_H

#include "network/topo/grouping.h"
#include "network/topo/matrix.h"

/* A quantile: `share` of all values are smaller. Sorts the values; NAN: there are none. */
double discover_quantile(double *values, uint32_t count, double share);

/*
 * Prepares measured distances for grouping: clips outliers, and moves hosts that are far from all others,
 * because of their own queues, nearer. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_clip(const struct matrix *matrix, struct matrix *out, struct error *err);

/* ---- conditions of certainty ---- */

/* Whether each group is separated from each other, and is not two groups itself. ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_are_apart(const struct matrix *matrix, const struct grouping *grouping, bool *out,
                                               struct error *err);
/*
 * Whether no host is as near to some hosts of another group as hosts of one group are to each other. For
 * latencies, which disturbance never shortens. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_hosts_are_apart(const struct matrix *matrix, const struct grouping *grouping,
                                                     bool *out, struct error *err);
/* True if a host is alone in its group. By bandwidth that cannot be told from one with a slower link. */
bool discover_has_lonely(const struct grouping *grouping);

#endif
