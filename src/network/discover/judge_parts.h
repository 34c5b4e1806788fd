/*
 * judge_parts.h - parts of the way from a survey to groups (probing_group.h). Pure. Private to src/api.
 */
#ifndef NETWORK_DISCOVER_JUDGE_PARTS_H
#define NETWORK_DISCOVER_JUDGE_PARTS_H

#include "network/topo/grouping.h"
#include "network/topo/matrix.h"

/* Sorts them. So many are smaller, of all; NAN: there are none. */
double probing_quantile(double *values, uint32_t count, double share);

/* What was measured, made fit for grouping: nothing is far beyond the rest, and hosts that were hidden by their own queues are told apart. ESP_ENOMEM. */
ESP_CHECKED enum esp_status probing_tame(const struct matrix *matrix, struct matrix *out, struct error *err);

/* ---- what is asked of groups before anybody is sure of them ---- */

/* Is each apart from each other, and one group itself? ESP_ENOMEM. */
ESP_CHECKED enum esp_status probing_are_apart(const struct matrix *matrix, const struct grouping *grouping, bool *out, struct error *err);
/* Is no host as near to some of another group as hosts of one group are to each other? For latencies, which nothing makes shorter than they are. ESP_ENOMEM. */
ESP_CHECKED enum esp_status probing_hosts_are_apart(const struct matrix *matrix, const struct grouping *grouping, bool *out, struct error *err);
/* Does a host stand alone? By bandwidth that cannot be told from one with a slower link. */
bool probing_has_lonely(const struct grouping *grouping);

#endif
