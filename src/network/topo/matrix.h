/*
 * matrix.h - how far nodes are from each other, as they were measured.
 *
 * Symmetric, 0 on the diagonal, NAN where nothing is known. What is in it is seconds (latency) or seconds per byte
 * (inverse bandwidth); whoever groups nodes by it does not mind which, as only proportions count. Plain data that the
 * caller owns; pure functions.
 */
#ifndef NETWORK_TOPO_MATRIX_H
#define NETWORK_TOPO_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MATRIX_SIZE_MAX 4096u

struct matrix {
	uint32_t size;
	double *at; /* row by row, size * size */
};

/* 0 on the diagonal, NAN elsewhere. From 1 to MATRIX_SIZE_MAX nodes: ESP_ELIMIT otherwise, ESP_ENOMEM. */
ESP_CHECKED enum esp_status matrix_init(struct matrix *matrix, uint32_t size, struct error *err);
ESP_CHECKED enum esp_status matrix_copy(struct matrix *matrix, const struct matrix *from, struct error *err);
void matrix_fini(struct matrix *matrix); /* of zeros: nothing happens */

static inline double matrix_get(const struct matrix *matrix, uint32_t i, uint32_t j)
{
	return matrix->at[(size_t)i * matrix->size + j];
}

/* Both ways. */
static inline void matrix_set(struct matrix *matrix, uint32_t i, uint32_t j, double value)
{
	matrix->at[(size_t)i * matrix->size + j] = value;
	matrix->at[(size_t)j * matrix->size + i] = value;
}

/* What becomes of two values for one pair, one measured from each end. */
enum matrix_joining {
	MATRIX_MEAN,
	MATRIX_SMALLER, /* latency: what disturbs a probe only makes it longer */
	MATRIX_LARGER,  /* bandwidth: the worse direction is what a plan waits for */
};

/* Where one of the two is known, it is taken; the diagonal becomes 0. */
void matrix_symmetrise(struct matrix *matrix, enum matrix_joining joining);

/* ESP_EINVAL with the pair: not symmetric, negative, infinite, a diagonal that is not 0. */
ESP_CHECKED enum esp_status matrix_check(const struct matrix *matrix, struct error *err);

/* Pairs whose distance is known, each counted once. */
uint64_t matrix_known(const struct matrix *matrix);

/* Only the rows and columns of the nodes that are listed, in that order: hosts that did not answer are left out so. */
ESP_CHECKED enum esp_status matrix_select(const struct matrix *from, const uint32_t *nodes, uint32_t count,
                                          struct matrix *out, struct error *err);

#endif
