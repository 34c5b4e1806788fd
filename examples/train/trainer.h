/*
 * trainer.h - data-parallel training on one rank: what all plans share, and one training per plan.
 *
 * Every rank computes the gradient of its own samples; the average over the ranks, which is the same bits
 * everywhere, moves the weights, which therefore stay the same bits everywhere. Nothing but gradients is sent.
 *
 * The trainings of the plans take turns, epoch by epoch, each with weights of its own. So a disturbance of the
 * machine meets all of them, and their times can be compared.
 */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include <espalier/espalier.h>

#include "buckets.h"
#include "data.h"
#include "options.h"
#include "progress.h"
#include "report.h"

struct trainer {
	const struct options *options; /* borrowed */
	struct esp_context *context;   /* borrowed */
	struct esp_group *world;
	uint32_t rank, ranks;
	struct share training, test;   /* of this rank */
	uint64_t steps;                /* of an epoch: the same on all ranks */
	struct model model;
	float *gradient;               /* shared memory of the library */
	float *rows;                   /* the batch */
	uint8_t *labels;
	uint32_t *order;               /* in which samples are taken */
	struct progress progress;
};

/* One training, under one plan. */
struct training {
	const char *plan;
	float *weights, *velocity;
	struct buckets buckets;
	struct times times;
	struct plan_bytes bytes;       /* of this rank */
};

/* Draws this rank's samples. */
void trainer_open(struct trainer *trainer, const struct options *options, struct esp_context *context);
void trainer_close(struct trainer *trainer);

/* Rank 0 makes the weights, the others get them. The next two as well are called by all ranks. */
void training_open(struct training *training, struct trainer *trainer, const char *plan);
void training_close(struct training *training);

/* One epoch of training, then a test. */
struct epoch_result training_epoch(struct training *training, struct trainer *trainer, uint64_t epoch);

/* The planner that was used, what all ranks have sent, and the mean of their times. */
void training_sum_up(struct training *training, struct trainer *trainer, struct plan_result *out);

#endif
