/*
 * store_lane.h - the chunks of one job on one lane of a parameter hub: rounds, versions, answers.
 *
 * The user of a transport (transport/transport.h, struct transport_user) whose peers are the job's workers. Requests come
 * in (wire/hub_frame.h), terms of a round are added in worker order, the lane that adds a chunk also optimizes it, and
 * answers leave by the connection that the request came on:
 *
 *     COLLECTING(v) -- the last term is added, and no answer of version v is being sent --> updated: COLLECTING(v + 1)
 *
 * A term whose turn has not come waits in a slot of the lane's pool, the slot freed last is used first; the term whose
 * turn it is is received into the sum itself. Terms of 16 bits are added in float32, and the weights of such a tensor are
 * float32 masters, which are answered rounded to nearest even. No memory is allocated after opening. A contribution
 * stands for a set of workers: one of them, the set's *pusher*, sends the sum of their gradients. Pure: no I/O, no
 * clock; one thread at a time, but lanes of a job share nothing that is written.
 *
 * Of an asynchronous job each worker's update is a round of its own. The lane collects the chunks of an update in slots,
 * says when it has all of them, and applies or drops them together when its owner, who asks all lanes, says so:
 *
 *     COLLECTING ── all chunks are there ──> whole ──┬── store_lane_apply() ──> each chunk has version + 1
 *         └── the worker is lost ──> nothing of it   └── store_lane_drop()
 *
 * A lost worker ends nothing there but its own update, unless worker 0 is lost before it has set the first weights.
 */
#ifndef HUB_STORE_STORE_LANE_H
#define HUB_STORE_STORE_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "hub/layout.h"
#include "math/optimizer.h"
#include "transport/transport.h"
#include "wire/hub_frame.h"

#define STORE_WORKERS_MOST 64u

/* The model of a job: arrays of layout->elements floats. Each lane touches its own chunks only. */
struct store_model {
	float *weights, *sums;            /* weights: the masters of tensors of 16 bits */
	uint16_t *halves;                 /* the weights of tensors of 16 bits as they are answered; NULL: there are none */
	float *states[OPTIMIZER_STATES];  /* NULL behind those that the optimizer has */
};

struct store_lane_config {
	const struct hub_layout *layout;        /* borrowed */
	const struct store_model *model;    /* borrowed */
	uint32_t lane;
	uint32_t workers;                   /* 1 to STORE_WORKERS_MOST; the peers of the transport */
	const struct optimizer *optimizers; /* by parameter group (layout->groups); copied. All of one kind */
	/*
	 * By worker: the workers that its pushes stand for, as a bit set of which it is the lowest; 0: another worker pushes
	 * for it. The sets part all workers. The terms of sets are added in the order of their lowest workers, and the sum is
	 * divided by the number of workers. Copied. NULL: each worker pushes for itself. Of jobs in rounds only.
	 */
	const uint64_t *sets;
	bool is_async;                      /* each update is a round of its own */
};

struct store_lane_stats {
	uint64_t rounds;                  /* chunks that were updated */
	uint64_t pushed_bytes, pulled_bytes; /* gradients that came, weights that left */
	uint64_t parked;                  /* terms that waited in a slot */
	uint32_t slots;                   /* slots that were ever needed at a time */
};

struct store_lane;

/*
 * Bytes that a lane takes at the most beside the model, for admission: terms that came early, and its tables. pushers:
 * the sets of workers; as many as workers where each pushes for itself.
 */
uint64_t store_lane_bytes(const struct hub_layout *layout, uint32_t lane, uint32_t workers, uint32_t pushers);
/* The same of an asynchronous job in addition: the slots of worker 0. */
uint64_t store_lane_async_bytes(const struct hub_layout *layout, uint32_t lane);
/* Bytes of the model's arrays. */
uint64_t store_model_bytes(const struct hub_layout *layout, const struct optimizer *optimizer);

/* ESP_EINVAL, ESP_ENOMEM. */
ESP_CHECKED enum esp_status store_lane_open(const struct store_lane_config *config, struct store_lane **out,
                                            struct error *err);
void store_lane_close(struct store_lane *lane); /* NULL is fine; the transport has been closed */

/*
 * The gradients of a set of workers lie in memory of theirs, by member, and their weights are wanted there: from now on
 * its pusher may push by HUB_SHARED. The memory stays until the lane is closed or has failed. Both arrays are of
 * layout->elements floats, for each member.
 */
struct store_shared {
	const float *gradients; /* NULL: none */
	float *weights;
};
void store_lane_share(struct store_lane *lane, uint32_t pusher, const struct store_shared *shared);

/* What a transport calls; its context is the struct store_lane. */
extern const struct transport_user store_lane_user;

/*
 * The job has failed with this status: no memory of the lane is read by the transport any more (transport_user.failed).
 * The first status stays.
 */
void store_lane_fail(struct store_lane *lane, enum esp_status status);

/*
 * The worker has ended its use of the hub: all of its requests are answered, and it contributes no more. A round that
 * another worker has begun, or begins later, and that lacks this worker is trouble (ESP_EPEER, the worker).
 */
void store_lane_leave(struct store_lane *lane, uint32_t worker);

/*
 * Of an asynchronous job: a worker whose update has come whole since the last call, or that was lost since then; false:
 * none. A lane without chunks never has one that is whole.
 */
bool store_lane_take_whole(struct store_lane *lane, uint32_t *out_worker);
bool store_lane_take_lost(struct store_lane *lane, uint32_t *out_worker);
/* Applies the worker's update, which is whole, and is the sum of count updates: each chunk has version + count. */
void store_lane_apply(struct store_lane *lane, uint32_t worker, uint32_t count);
/* Forgets what there is of the worker's update. */
void store_lane_drop(struct store_lane *lane, uint32_t worker);

/* Why the lane wants its job to fail: a worker is lost, or broke the protocol, or workers differ. Once; false: nothing new. */
struct store_trouble {
	enum esp_status status;
	uint32_t worker;   /* at fault; UINT32_MAX: none in particular */
	struct error why;  /* text "" where the transport alone knows (a connection that broke) */
};
bool store_lane_take_trouble(struct store_lane *lane, struct store_trouble *out);

/*
 * The workers that a chunk of this tensor waits for, as a bit set: of its chunks on this lane, the one with the fewest
 * versions. 0: no round of it is under way here.
 */
uint64_t store_lane_missing(const struct store_lane *lane, uint32_t tensor);
/* The least and the most version over the lane's chunks; false: it has none. */
bool store_lane_versions(const struct store_lane *lane, uint64_t *out_least, uint64_t *out_most);
struct store_lane_stats store_lane_stats(const struct store_lane *lane);

#endif
