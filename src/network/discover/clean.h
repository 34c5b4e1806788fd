/*
 * clean.h - separates measured distances into parts of single nodes and disturbances of single pairs. Pure
 * functions.
 *
 * A node that is slow to answer is far from all others; a burst of other traffic makes one pair far. Neither
 * tells where a node is.
 */
#ifndef NETWORK_DISCOVER_CLEAN_H
#define NETWORK_DISCOVER_CLEAN_H

#include "network/topo/matrix.h"

/*
 * Each node's own part of its distances, robustly (medians): out_own[i] + out_own[j] is the usual distance of i
 * and j. Negative for a node that is nearer to all others than usual. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_clean_own(const struct matrix *matrix, double *out_own, struct error *err);

/*
 * Clips distances that are too long to a fence: the upper quartile plus one and a half interquartile ranges,
 * all without the own parts. Short ones stay: disturbance makes a probe longer. The order of distances is kept.
 * *out_count (may be NULL): number of clipped pairs. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_clean_fence(struct matrix *matrix, uint64_t *out_count, struct error *err);

struct suspect {
	uint32_t a, b;   /* a < b                                            */
	double expected; /* by the model, in the unit of the matrix */
	double measured; /* NAN: unknown */
	double excess;   /* deviation from the model in usual deviations, not negative; INFINITY: unknown */
};

/*
 * Pairs that should be probed again: unknown, or further from the model (discover_embedding_matrix() with start-up
 * costs, of an embedding with few dimensions such as 2: many dimensions follow the noise) than `threshold`
 * usual deviations (0: 6) and than 5 % of the distance. The worst first, at most `room`. ESP_EINVAL (sizes
 * differ), ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_clean_suspects(const struct matrix *matrix, const struct matrix *model,
                                                    double threshold, struct suspect *out, uint32_t room,
                                                    uint32_t *out_count, struct error *err);

#endif
