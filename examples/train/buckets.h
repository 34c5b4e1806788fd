/*
 * buckets.h - the gradients of the layers, averaged over all ranks in the background.
 *
 * A bucket is a layer. Its call is prepared once, with buffers and plan, and started whenever the layer's gradient is
 * known; while it runs, the layers before it are computed. What is left of it when the gradient is needed is
 * time spent waiting.
 *
 *     backward:   |  layer 3  |  layer 2  |  layer 1  |  layer 0  |
 *     in flight:              [  bucket 3 ]           [ bucket 1    ]
 *                                         [ bucket 2    ]         [ bucket 0      ]
 *     update:                                                     |3|2|1|   wait  |0|
 */
#ifndef TRAIN_BUCKETS_H
#define TRAIN_BUCKETS_H

#include <espalier/espalier.h>
#include <stdatomic.h>

#include "model.h"

/* Where the time of one rank has gone, in nanoseconds. */
struct times {
	int64_t total;             /* all training steps                                                   */
	int64_t waiting;           /* of total: the gradient was needed and not there, or was being started */
	int64_t in_flight;         /* of total: at least one bucket was under way                          */
	int64_t cpu;               /* of all threads, during total                                         */
	int64_t communication_cpu; /* of cpu: the library's threads, and this one within the library       */
};

struct bucket {
	struct esp_work *work;
	int64_t started, ended;    /* of the last time                                                        */
	_Atomic int64_t told;      /* when the library said that it had ended; written by one of its threads */
};

struct buckets {
	uint32_t count;
	uint32_t largest;
	struct bucket bucket[MODEL_LAYERS_MAX];
	struct times *times; /* borrowed: what waiting and flights are added to */
};

/* plan: NULL for the library's choice. gradient has the model's form. Called by all ranks. */
void buckets_open(struct buckets *buckets, struct esp_group *group, const struct model *model, float *gradient,
                  const char *plan, struct times *times);
void buckets_close(struct buckets *buckets);

/* The layer's gradient is complete, and belongs to the library until ... */
void buckets_start(struct buckets *buckets, uint32_t layer);
/* ... this returns: it is the average over all ranks then. In the order in which they were started. */
void buckets_wait(struct buckets *buckets, uint32_t layer);

/* After each step, when all buckets have been waited for: adds up the time in flight. */
void buckets_land(struct buckets *buckets);

/* The planner that the largest bucket used last (a small one may go another way); "" before the first time. */
const char *buckets_planner(const struct buckets *buckets);

#endif
