/*
 * load.h - the computation and communication of a training iteration, with all random values drawn.
 *
 * Made from a model for a number of workers; train.h runs it. A server's parameters are in the order of
 * sending, gradients in the order in which they are ready, times are in seconds. Pure, immutable once made.
 *
 * Random values follow from a seed. Seed 0 draws nothing: order and speeds are those of the model, if it has
 * any (MODEL_CALIBRATED), otherwise the forward order and the profile of speeds below, slowest worker last.
 */
#ifndef SIM_WORKLOAD_LOAD_H
#define SIM_WORKLOAD_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/workload/model.h"

#define LOAD_NONE UINT32_MAX
#define LOAD_WORKERS_MAX (1u << 16)

/* A parameter that is distributed. */
struct load_item {
	uint64_t bytes;
	uint32_t layer;    /* the forward pass of this layer waits for it     */
	uint32_t variable; /* its server: variable mod servers                */
	uint32_t source;   /* the parameter of the model, for messages */
};

/* A gradient that is summed. */
struct load_gradient {
	uint64_t bytes;
	uint32_t variable;
	uint32_t item;   /* its parameter's index in items; LOAD_NONE: unknown */
	uint32_t source; /* the parameter of the model                                 */
	double ready_s;  /* after the start of the backward pass, at factor 1          */
};

struct load {
	struct load_item *items;
	uint32_t item_count;
	struct load_gradient *gradients;
	uint32_t gradient_count;
	double *layer_s; /* forward time of each layer */
	uint32_t layer_count;
	double backward_s;
	double distribution_factor; /* on the bytes of items if there is one server */
	double *worker_factor;      /* on each worker's ready_s */
	uint32_t workers;
	/* Of a replay: recorded times of some workers in some iterations. */
	/* by row and gradient: replaces factor and ready_s, never less than the previous gradient's; NULL: not recorded */
	double *seen_s;
	uint32_t *row_of;     /* by iteration and worker                                                      */
	uint32_t iterations;  /* number of iterations in row_of; then it starts over */
};

/*
 * Speeds: the worker at position i of W is slower by 1 + (slowest_factor - 1) * (i / (W - 1))^3: a few
 * stragglers, most workers nearly equal. A seed other than 0 shuffles the positions. If the model has fewer
 * factors than there are workers, factors are sampled.
 *
 * Order: a seed other than 0 gives an order that differs from the forward order as much as the model's own does
 * (each parameter is moved by the displacement of another, drawn without replacement), with the weights of the
 * last layer at the end, for which every worker waits.
 *
 * ESP_EINVAL: no gradient is aggregated, or no worker; ESP_ENOMEM. workload_load_fini() is allowed in any case.
 */
ESP_CHECKED enum esp_status workload_load_init(struct load *load, const struct model *model, uint32_t workers,
                                               uint64_t seed, struct error *err);
void workload_load_fini(struct load *load);

/* Slows every worker by a further factor of its own, uniform from 1 to 1 + most. */
void workload_load_jitter(struct load *load, double most, uint64_t seed);

/* Seconds from the start of a worker's backward pass until a gradient is ready. */
static inline double load_ready_s(const struct load *load, uint32_t worker, uint32_t iteration, uint32_t gradient)
{
	if (!load->seen_s)
		return load->worker_factor[worker] * load->gradients[gradient].ready_s;
	size_t row = load->row_of[(size_t)(iteration % load->iterations) * load->workers + worker];
	return load->seen_s[row * load->gradient_count + gradient];
}

uint64_t workload_load_item_bytes(const struct load *load);
uint64_t workload_load_gradient_bytes(const struct load *load);

#endif
