/*
 * clean.h - measured distances made fit for grouping: what belongs to single nodes, what belongs to single pairs.
 *
 * A node that is slow to answer is far from everybody; a burst of others' traffic makes one pair far. Neither says where a
 * node is. Pure functions.
 */
#ifndef NETWORK_DISCOVER_CLEAN_H
#define NETWORK_DISCOVER_CLEAN_H

#include "network/topo/matrix.h"

/*
 * The part of its distances that is each node's own, robustly (medians): out_own[i] + out_own[j] is the usual distance of
 * i and j. May be below 0 for a node that is nearer to all than usual. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status clean_own(const struct matrix *matrix, double *out_own, struct error *err);

/*
 * Brings distances that are too long back to the fence, which stands, the nodes' own parts aside, one and a half times the
 * distance between the quartiles above the upper one. Short ones stay: what disturbs a probe lengthens it. What was further
 * than another stays at least as far. *out_count (may be NULL): how many pairs that were. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status clean_fence(struct matrix *matrix, uint64_t *out_count, struct error *err);

struct suspect {
	uint32_t a, b;   /* a < b                                            */
	double expected; /* by the model, in the unit of the matrix          */
	double measured; /* NAN: the pair is not known at all                */
	double excess;   /* how many usual deviations it is off, at least 0; INFINITY: not known */
};

/*
 * Pairs that should be probed again: not known, or further from the model (embedding_matrix() with start-up costs of an
 * embedding with few dimensions, 2 say: many dimensions follow the noise) than threshold usual deviations (0: 6) and than 5 %
 * of the distance. The worst first, at most room of them. ESP_EINVAL (sizes differ), ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status clean_suspects(const struct matrix *matrix, const struct matrix *model, double threshold,
                                           struct suspect *out, uint32_t room, uint32_t *out_count, struct error *err);

#endif
