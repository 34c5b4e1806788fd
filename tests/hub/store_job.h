/*
 * store_job.h - a small random job of a parameter hub, and the weights that must come of it. For tests.
 *
 * The reference is plain: per round the terms are added one by one in worker order, then the portable kernel optimizes.
 */
#ifndef TESTS_HUB_STORE_JOB_H
#define TESTS_HUB_STORE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "hub/layout.h"
#include "hub/store/store_lane.h"

#define JOB_GROUPS 2u
#define JOB_CHANGES 2u /* of hyper-parameters, per group */
#define JOB_ROUNDS 4u
#define JOB_LANES 3u
#define JOB_CHUNK_ELEMENTS 96u
#define JOB_INTEGER_WORKERS 20u

struct job_change {
	uint64_t from;
	struct optimizer optimizer;
};

struct job {
	uint64_t seed;
	struct hub_layout layout;
	struct store_model model;   /* of the hub */
	uint32_t workers, rounds;
	bool is_integer;            /* gradients name worker and round, and the sums are looked at */
	struct optimizer optimizers[JOB_GROUPS];
	struct job_change changes[JOB_GROUPS][JOB_CHANGES];
	uint32_t change_count[JOB_GROUPS];
	float *weights[JOB_ROUNDS + 1]; /* reference, by version */
	float *states[OPTIMIZER_STATES]; /* reference, after the last round */
};

void job_draw(struct job *job, uint64_t seed);
void job_fini(struct job *job);

/* Data that a worker sends of a chunk: a gradient, or the first weights. */
void job_gradient(const struct job *job, uint32_t worker, uint64_t version, uint32_t chunk, float *out);
void job_first(const struct job *job, uint32_t chunk, float *out);
/* Are these the weights of the chunk at this version? */
bool job_is_version(const struct job *job, uint32_t chunk, uint64_t version, const float *weights);
/* All rounds are over: model, states and sums of the hub. */
void job_check_end(const struct job *job);

#endif
