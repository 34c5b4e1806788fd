/*
 * load.h - what an iteration of training computes and moves, with everything drawn that is random.
 *
 * Made from a model for a number of workers; train.h runs it. What a server sends stands in the order of
 * sending, gradients stand in the order in which they are ready, times are seconds. Pure, immutable once made.
 *
 * What is random follows from a seed. Seed 0 draws nothing: order and speeds are those of the model, if it has any
 * (MODEL_CALIBRATED), otherwise the forward order and the profile of speeds below, slowest worker last.
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
	uint32_t source;   /* the parameter of the model, for people          */
};

/* A gradient that is summed. */
struct load_gradient {
	uint64_t bytes;
	uint32_t variable;
	uint32_t item;   /* what it is the gradient of, in items; LOAD_NONE: not known */
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
	double distribution_factor; /* on the bytes of items where there is one server */
	double *worker_factor;      /* on each worker's ready_s */
	uint32_t workers;
	/* Replayed: what was seen of some workers in some iterations. */
	double *seen_s;       /* by row and gradient: in place of factor and ready_s, never less than the gradient before; NULL: nothing was */
	uint32_t *row_of;     /* by iteration and worker                                                      */
	uint32_t iterations;  /* that row_of knows; after the last one it starts over                         */
};

/*
 * Speeds: the worker at place i of W is slower by 1 + (slowest_factor - 1) * (i / (W - 1))^3: a few stragglers, most
 * workers nearly alike. A seed other than 0 shuffles the places. More workers than the model has factors for are sampled from these.
 *
 * Order: a seed other than 0 gives an order that strays as far from the forward order as the model's own (each parameter
 * is moved by the distance of another, drawn without return), with the weights of the last layer at the end, which hold up every worker.
 *
 * ESP_EINVAL: no gradient is aggregated, or no worker; ESP_ENOMEM. load_fini() is allowed in any case.
 */
ESP_CHECKED enum esp_status load_init(struct load *load, const struct model *model, uint32_t workers, uint64_t seed, struct error *err);
void load_fini(struct load *load);

/* Every worker is slower by a factor of its own, drawn evenly from 1 to 1 + most; beside those it has already. */
void load_jitter(struct load *load, double most, uint64_t seed);

/* Seconds from the start of a worker's backward pass until a gradient is ready. */
static inline double load_ready_s(const struct load *load, uint32_t worker, uint32_t iteration, uint32_t gradient)
{
	if (!load->seen_s)
		return load->worker_factor[worker] * load->gradients[gradient].ready_s;
	size_t row = load->row_of[(size_t)(iteration % load->iterations) * load->workers + worker];
	return load->seen_s[row * load->gradient_count + gradient];
}

uint64_t load_item_bytes(const struct load *load);
uint64_t load_gradient_bytes(const struct load *load);

#endif
