/*
 * matrix.h - measured distances between nodes.
 *
 * Symmetric, 0 on the diagonal, NAN where unknown. Values are seconds (latency) or seconds per byte (inverse
 * bandwidth); grouping only uses their ratios. Plain data that the caller owns; pure functions.
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
void matrix_fini(struct matrix *matrix); /* accepts a zeroed struct */

static inline double matrix_get(const struct matrix *matrix, uint32_t i, uint32_t j)
{
	return matrix->at[(size_t)i * matrix->size + j];
}

/* Sets both directions. */
static inline void matrix_set(struct matrix *matrix, uint32_t i, uint32_t j, double value)
{
	matrix->at[(size_t)i * matrix->size + j] = value;
	matrix->at[(size_t)j * matrix->size + i] = value;
}

/* How to combine the two values of a pair, one measured from each end. */
enum matrix_joining {
	MATRIX_MEAN,
	MATRIX_SMALLER, /* latency: disturbances only make it longer */
	MATRIX_LARGER,  /* inverse bandwidth: a plan waits for the slower direction */
};

/* If only one of the two is known, it is used; the diagonal becomes 0. */
void matrix_symmetrise(struct matrix *matrix, enum matrix_joining joining);

/* ESP_EINVAL with the pair: not symmetric, negative, infinite, a diagonal that is not 0. */
ESP_CHECKED enum esp_status matrix_check(const struct matrix *matrix, struct error *err);

/* Number of pairs with a known distance, each pair counted once. */
uint64_t matrix_known(const struct matrix *matrix);

/* The rows and columns of the listed nodes, in that order: leaves out hosts that did not answer. */
ESP_CHECKED enum esp_status matrix_select(const struct matrix *from, const uint32_t *nodes, uint32_t count,
                                          struct matrix *out, struct error *err);

#endif
