/*
 * espalier/hub.h - training through a parameter hub: workers push gradients, the hub sums them, runs the optimizer and
 * answers with new weights.
 *
 *     struct esp_hub *hub;
 *     struct esp_hub_tensor tensors[] = {{sizeof(tensors[0]), "weight", n, ESP_F32, 0, weights}};
 *     esp_hub_connect(NULL, &hub);                    // the ticket from ESP_HUB_TICKET
 *     esp_hub_init(hub, tensors, 1);                  // all workers have worker 0's weights now
 *     for (...) {
 *         compute_gradient(weights, gradient);
 *         esp_hub_pushpull(hub, 0, gradient, weights);
 *     }
 *     esp_hub_close(hub);
 *
 * 'espalier hub create' makes a job and its ticket; 'man espalier-hub' has the rest. A process may use a hub with or
 * without esp_init().
 *
 * Workers that share a host add their gradients in shared memory, and one of them, the lowest, pushes the sum for all:
 * the host's link carries the model once each way for all of its workers. So it is where the model is of ESP_F32, the
 * job trains in rounds, and the setting transport is not tcp. The hub then adds the sums of hosts in the order of their
 * lowest workers; within a host gradients are added in the order of workers.
 *
 * Words. A *tensor* is a named vector of a job's model. Its *version* counts the rounds that it has been through: a
 * *round* takes each of its chunks from version v to v + 1, with one gradient of every worker. The hub adds in the
 * order of worker numbers, but for what is said above, divides by their count and runs the optimizer, so that results
 * never depend on timing.
 *
 * Rules, beside those of espalier.h:
 *
 * - All workers declare the same tensors in the same order, and push to each tensor equally often. Calls on one tensor
 *   run one after the other, and a call that waits so holds up those that were started after it: a worker starts its
 *   pushes of a round to all tensors, in any order, before it starts a second call on one of them.
 * - No call hangs. A worker that dies, leaves while others need it, or differs from the others ends the calls of all
 *   workers with a sentence that names it; after that every call on this esp_hub fails alike. Close it, and connect
 *   again with all workers to begin anew.
 * - A job that was created with --mode async has updates in place of rounds, see esp_hub_update().
 * - A gradient's memory is the library's from the start of a call until it has ended. Weights are written by then.
 * - Any thread may make calls; connect, init and close are made by one thread.
 */
#ifndef ESPALIER_HUB_H
#define ESPALIER_HUB_H

#include "espalier.h"

#ifdef __cplusplus
extern "C" {
#endif

struct esp_hub;

struct esp_hub_options {
	size_t struct_size;
	const char *ticket;          /* path of the file; NULL: from ESP_HUB_TICKET                           */
	uint32_t worker;             /* counts only if workers is not 0                                       */
	uint32_t workers;            /* 0: worker and workers are rank and size as a launcher has set them    */
	const char *const *settings; /* as of esp_init(): join_seconds, deadline_seconds, transport. NULL: none  */
};
#define ESP_HUB_OPTIONS_INIT ESP_INIT(struct esp_hub_options)

/*
 * Joins the job of a ticket, at all of its hubs. options may be NULL. ESP_EINVAL: no ticket; ESP_EPARSE, ESP_EIO: not
 * a good one; ESP_EMISMATCH: the job was created for another number of workers, or with other hubs than the ticket
 * names; ESP_EPEER: the hub does not know the job (any more); ESP_ELINK, ESP_ETIMEOUT: it cannot be reached;
 * ESP_ESTATE: the job has this worker already.
 */
ESP_API enum esp_status esp_hub_connect(const struct esp_hub_options *options, struct esp_hub **out);

/*
 * Leaves the job. If calls are unfinished the job fails for the other workers; if not, they learn of it only if they
 * need this worker again. Work that was started stays valid until esp_work_free(). NULL is fine.
 */
ESP_API enum esp_status esp_hub_close(struct esp_hub *hub);

struct esp_hub_tensor {
	size_t struct_size;
	const char *name;   /* differs between the tensors of a job */
	uint64_t count;     /* elements; 0 is fine                  */
	/*
	 * ESP_F32, ESP_F16 or ESP_BF16: of gradients and weights. The hub adds and optimizes in float32 in any case: it
	 * keeps float32 masters of the weights, and answers with them rounded to nearest even.
	 */
	enum esp_type type;
	uint32_t group;     /* parameter group, from 0: tensors of a group share the values of the optimizer */
	/*
	 * The first weights. Worker 0's are taken for all; the others' memory gets them, unless it is NULL. NULL on worker
	 * 0: zeros.
	 */
	void *weights;
};

/*
 * Declares the model. Called once, by all workers; returns when all have come and have the first weights. Calls name a
 * tensor by its place in this array. ESP_EMISMATCH: workers differ; ESP_ELIMIT: the hub lacks memory, or the model has
 * too many tensors or elements; ESP_EUNSUPPORTED: a type; ESP_ETIMEOUT: workers are missing (the setting join_seconds).
 */
ESP_API enum esp_status esp_hub_init(struct esp_hub *hub, const struct esp_hub_tensor *tensors, uint32_t count);

/* Gives a gradient to the next round of a tensor, and returns when the round is over. */
ESP_API enum esp_status esp_hub_push(struct esp_hub *hub, uint32_t tensor, const void *gradient);
/* The weights of a tensor as they are now. While a round of it is under way chunks may be of two versions. */
ESP_API enum esp_status esp_hub_pull(struct esp_hub *hub, uint32_t tensor, void *weights);
/* Both: the weights after the round. May be the same memory. */
ESP_API enum esp_status esp_hub_pushpull(struct esp_hub *hub, uint32_t tensor, const void *gradient, void *weights);

/*
 * Where the weights of a tensor appear for all workers of this host that push together: read-only memory, until
 * esp_hub_close(). They hold the first weights when esp_hub_init() has returned. A round writes them in place once all
 * workers of the host have pushed the tensor, and is over when the worker's own push is: so this is for a worker that
 * has done with a tensor's weights when it pushes its gradient (not with recomputation of activations), and reads them
 * again when its push has ended. It then calls esp_hub_push() in place of esp_hub_pushpull(). ESP_EUNSUPPORTED: this
 * worker pushes by itself.
 */
ESP_API enum esp_status esp_hub_map(struct esp_hub *hub, uint32_t tensor, const void **weights);
/*
 * Memory for this worker's gradient of a tensor, until esp_hub_close(): a gradient that is pushed from there is not
 * copied before it is added. ESP_EUNSUPPORTED as of esp_hub_map().
 */
ESP_API enum esp_status esp_hub_gradient(struct esp_hub *hub, uint32_t tensor, void **gradient);

enum esp_hub_kind {
	ESP_HUB_PUSH = 1,
	ESP_HUB_PULL = 2,
	ESP_HUB_PUSHPULL = 3,
	/*
	 * The optimizer's state of a tensor, in float32 whatever the tensor's type: `state` 1 and 2 are the arrays that the
	 * optimizer keeps (momentum; Adam's first and second moments), 0 is the weights (the masters of ESP_F16 and
	 * ESP_BF16). Read by any worker at any time, into `weights`; between rounds, to be of one version. Written by
	 * worker 0, from `gradient`, between esp_hub_init() and its first push of the tensor: training goes on after
	 * `rounds` rounds that another job has run, with any number of workers. State 0 is written of ESP_F16 and ESP_BF16
	 * only, and has to round to the first weights. No worker reads while worker 0 writes.
	 */
	ESP_HUB_READ_STATE = 4,
	ESP_HUB_WRITE_STATE = 5
};

struct esp_hub_call {
	size_t struct_size;
	enum esp_hub_kind kind;
	uint32_t tensor;
	const void *gradient; /* ESP_HUB_PUSH, ESP_HUB_PUSHPULL, ESP_HUB_WRITE_STATE   */
	void *weights;        /* ESP_HUB_PULL, ESP_HUB_PUSHPULL, ESP_HUB_READ_STATE    */
	int64_t deadline_ns;  /* from now on; 0: the setting deadline_seconds          */
	uint32_t state;       /* ESP_HUB_READ_STATE, ESP_HUB_WRITE_STATE               */
	uint32_t rounds;      /* ESP_HUB_WRITE_STATE: that lie before version 0        */
};
#define ESP_HUB_CALL_INIT ESP_INIT(struct esp_hub_call)

/*
 * Starts a call in the background. esp_test(), esp_wait(), esp_work_error() and esp_work_free() take its work; the
 * other functions on work refuse it (ESP_EUNSUPPORTED). Several calls on one tensor run one after the other.
 */
ESP_API enum esp_status esp_hub_start(struct esp_hub *hub, const struct esp_hub_call *call, struct esp_work **out);

/*
 * Other values of the job's optimizer for a parameter group: "lr=0.05", "lr=0.05 weight_decay=1e-4"; those that are not
 * named stay. They hold for gradients that are pushed after this call, from *out_version (NULL: not wanted) of the
 * group's tensors on. All workers make the same changes before they push for the same version; if they differ the job
 * fails and the error names worker and value. ESP_EINVAL: a bad value, no such group, or another kind of optimizer.
 */
ESP_API enum esp_status esp_hub_set(struct esp_hub *hub, uint32_t group, const char *values, uint64_t *out_version);

/*
 * The values of a parameter group's optimizer on this worker: "sgd lr=0.1 momentum=0.9 ..."; NULL: no such group. Until
 * the next esp_hub_set().
 */
ESP_API const char *esp_hub_optimizer(struct esp_hub *hub, uint32_t group);

/*
 * Asynchronous jobs ('espalier hub create --mode async --delay-bound T'). Each worker's update of the whole model is a
 * round of its own: the hub's optimizer runs with it alone, undivided, and the model's version rises by one. Workers
 * never wait for each other, and one that dies ends nothing but its own update:
 *
 *     while (...) {
 *         esp_hub_model(hub, weights, &version);            // weights[t]: of tensor t
 *         compute_gradients(weights, gradients);
 *         update.computed_from = version;
 *         esp_hub_update(hub, &update, &result);            // applied, or dropped as it would be too late
 *     }
 *
 * The *delay* of an update is the version after it minus the version of the weights that it was computed from; a lone
 * worker's updates have 1. The hub applies none whose delay would be above T. Where the job has a scheduler (--sched),
 * it orders the updates by their deadlines and by the links, and drops some before a byte of them is sent; a worker
 * that cannot reach it offers its updates to the hub directly.
 *
 * Two updates of a worker in flight: a second thread calls esp_hub_update() and then esp_hub_model(), into other
 * memory, while the first one computes the next gradients with the weights that it has. Delays grow by the updates that
 * others apply meanwhile.
 *
 * The weights of all tensors as they are now. *out_version: every chunk of them has at least this version.
 * ESP_EUNSUPPORTED: the job trains in rounds.
 */
ESP_API enum esp_status esp_hub_model(struct esp_hub *hub, void *const *weights, uint64_t *out_version);

struct esp_hub_update {
	size_t struct_size;
	const void *const *gradients; /* by tensor                                                                    */
	uint64_t computed_from;       /* the version of esp_hub_model()                                               */
	double norm;                  /* Euclidean norm of the update, told to the scheduler; 0: not known            */
	int64_t deadline_ns;          /* from now on; 0: the setting deadline_seconds                                 */
	/*
	 * This worker leaves within so long, from now on, and this is its last update: the scheduler decides it before
	 * those of others. 0: it stays. The deadline is at most this.
	 */
	int64_t leaves_ns;
};
#define ESP_HUB_UPDATE_INIT ESP_INIT(struct esp_hub_update)

/* The end of an update. */
enum esp_hub_fate {
	ESP_HUB_APPLIED = 0,
	ESP_HUB_LATE_AT_SOURCE = 1, /* dropped by the scheduler: too late, or it would hold up others. No byte was sent */
	ESP_HUB_LATE_AT_OFFER = 2,  /* dropped by the hub when it was offered: too late already. No byte was sent       */
	ESP_HUB_LATE_AT_HUB = 3     /* dropped by the hub: others were applied while it was sent                        */
};

struct esp_hub_result {
	size_t struct_size;
	enum esp_hub_fate fate;
	uint64_t version;  /* applied: the model's, after it                                          */
	uint64_t delay;    /* applied: of the update; else that which it would have had, as far as known */
	uint64_t position; /* in the scheduler's order, from 1; 0: the hub was asked directly        */
};
#define ESP_HUB_RESULT_INIT ESP_INIT(struct esp_hub_result)

/*
 * Gives an update of all tensors to the hub and returns when it is applied as a whole, or dropped: ESP_OK in both.
 * One call at a time. ESP_EUNSUPPORTED: the job trains in rounds; ESP_EINVAL: a norm that is negative or no number;
 * ESP_ETIMEOUT, ESP_EPEER and others as of esp_hub_push().
 */
ESP_API enum esp_status esp_hub_update(struct esp_hub *hub, const struct esp_hub_update *update,
                                       struct esp_hub_result *result);
/* The greatest delay of an applied update; 0: the job trains in rounds. */
ESP_API uint32_t esp_hub_delay_bound(const struct esp_hub *hub);

ESP_API uint32_t esp_hub_worker(const struct esp_hub *hub);
ESP_API uint32_t esp_hub_workers(const struct esp_hub *hub);

struct esp_hub_stats {
	size_t struct_size;
	uint64_t calls;          /* that have ended well                                             */
	uint64_t pushed_bytes;   /* gradients of these calls                                         */
	uint64_t pulled_bytes;   /* weights                                                          */
	uint64_t sent_bytes;     /* to the hub over data connections, heads of messages included     */
	uint64_t received_bytes;
};
#define ESP_HUB_STATS_INIT ESP_INIT(struct esp_hub_stats)
ESP_API enum esp_status esp_hub_get_stats(struct esp_hub *hub, struct esp_hub_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
