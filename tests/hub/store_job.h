/*
 * store_job.h - a small random job of a parameter hub, and the weights that must come of it. For tests.
 *
 * The reference is plain: per round the terms of each set are added one by one in worker order, then the sums of
 * the sets, and the portable kernel optimizes.
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

/* A hub of the job: the layout and the memory of its own chunks. */
struct job_hub {
	struct hub_layout layout;
	struct store_model model;
};

struct job {
	uint64_t seed;
	struct hub_layout layout;   /* the workers': of all hubs */
	struct job_hub hubs[JOB_LANES];
	uint32_t hub_count;
	uint32_t workers, rounds;
	uint64_t sets[STORE_WORKERS_MOST]; /* by worker: those that it pushes for; 0: another worker pushes for it */
	bool is_integer;            /* gradients name worker and round, and the sums are looked at */
	struct optimizer optimizers[JOB_GROUPS];
	struct job_change changes[JOB_GROUPS][JOB_CHANGES];
	uint32_t change_count[JOB_GROUPS];
	uint32_t before;                 /* rounds of another job, whose states worker 0 writes; 0: states are zeros */
	uint32_t states;                 /* that the optimizer has */
	/* Reference, by array (0: master weights, the others: states) and version. */
	float *arrays[1 + OPTIMIZER_STATES][JOB_ROUNDS + 1];
};

void job_draw(struct job *job, uint64_t seed);
void job_fini(struct job *job);

/* The worker that pushes for this one. */
uint32_t job_pusher(const struct job *job, uint32_t worker);
/* Data that a worker sends of a chunk, in the tensor's type: the sum of its set's gradients, or the first weights. */
void job_gradient(const struct job *job, uint32_t worker, uint64_t version, uint32_t chunk, void *out);
void job_first(const struct job *job, uint32_t chunk, void *out);
/* Are these the weights of the chunk at this version, in the tensor's type? */
bool job_is_version(const struct job *job, uint32_t chunk, uint64_t version, const void *weights);
/* The elements of a chunk in an array of the optimizer. */
const float *job_array(const struct job *job, uint32_t chunk, uint32_t array, uint64_t version);
/* The hub that has this lane of the workers' layout. */
uint32_t job_hub_of(const struct job *job, uint32_t lane);
/* Where the chunk's hub has its elements of an array. */
const float *job_held(const struct job *job, uint32_t chunk, uint32_t array);
/* All rounds are over: models, states and sums of the hubs. */
void job_check_end(const struct job *job);

#endif
