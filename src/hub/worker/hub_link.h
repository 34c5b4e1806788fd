/*
 * hub_link.h - the link of one worker to the parameter hub of its job, or its hubs: a control connection to each, a
 * data connection for each lane, and the thread "esp-hub-link" that drives them.
 *
 *     hub_link_open()      the control connection stands, and the worker has joined its job
 *     hub_link_declare()   all workers have joined and have the same tensors; lanes are connected, the thread runs
 *     hub_op_start() ...   calls on tensors, in the background
 *     hub_link_close()
 *
 * Any thread may start and wait for calls; open, declare and close are called by one thread, with no call of another
 * thread under way. Does I/O. After a failure, which stays, all calls end with it.
 */
#ifndef HUB_WORKER_HUB_LINK_H
#define HUB_WORKER_HUB_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "hub/control/ticket.h"
#include "hub/layout.h"
#include "math/optimizer.h"

struct hub_link;

struct hub_link_config {
	const struct ticket *ticket; /* copied */
	uint32_t worker, workers;
	bool shares;                 /* memory with other workers of its host: they push together, once */
	uint64_t join_ns;            /* most time to connect, and again to wait for the other workers */
};

/* ESP_EMISMATCH: the ticket is for another number of workers; ESP_EPEER, ESP_ELINK, ESP_ETIMEOUT, ESP_ESTATE,
 * ESP_ENOMEM. */
ESP_CHECKED enum esp_status hub_link_open(const struct hub_link_config *config, struct hub_link **out,
                                          struct error *err);
/* Once. ESP_EMISMATCH: workers differ; ESP_ELIMIT: the hub has not enough memory; others as of hub_link_open(). */
ESP_CHECKED enum esp_status hub_link_declare(struct hub_link *link, const struct layout_tensor *tensors, uint32_t count,
                                             struct error *err);
/*
 * If no call is under way the hub is told that the worker leaves, so that the other workers learn of it only if they
 * need it; otherwise the job fails. NULL is fine. Calls that are not freed stay valid, and have ended.
 */
void hub_link_close(struct hub_link *link);

const struct hub_layout *hub_link_layout(const struct hub_link *link); /* NULL: nothing is declared */
/* The optimizer that the job was created with. */
const struct optimizer *hub_link_optimizer(const struct hub_link *link);
/*
 * The weights of a tensor in memory that the workers of this host share, once all is declared; NULL: this worker pushes
 * by itself. For the first HUB_PULL, which may be given this memory; and in pages that cannot be written, where all
 * answers appear.
 */
float *hub_link_weights(const struct hub_link *link, uint32_t tensor);
const float *hub_link_map(const struct hub_link *link, uint32_t tensor);
/* Where a gradient of this worker's lies in that memory; one that is pushed from there is not copied. NULL as above. */
float *hub_link_gradient(const struct hub_link *link, uint32_t tensor);
uint32_t hub_link_worker(const struct hub_link *link);
uint32_t hub_link_workers(const struct hub_link *link);
const char *hub_link_job(const struct hub_link *link);
uint64_t hub_link_session(const struct hub_link *link); /* of the job, as its first hub counts them */
const struct ticket *hub_link_ticket(const struct hub_link *link);
bool hub_link_is_forked(const struct hub_link *link); /* this process is a child of the one that opened it */

/* ---- calls ---- */

/* The first member of a call is a pointer to this: it tells a call on a hub from other work of the public header. */
extern const char hub_op_kind;

struct hub_op;

struct hub_op_call {
	uint8_t kind;         /* HUB_PUSH, HUB_PULL, HUB_PUSHPULL, HUB_SET, HUB_READ + a, HUB_WRITE + a */
	uint32_t tensor;
	uint32_t before;      /* HUB_WRITE: rounds before version 0 */
	const void *gradient; /* not of HUB_PULL and HUB_READ; borrowed until the call has ended */
	void *weights;        /* HUB_PULL, HUB_PUSHPULL, HUB_READ; may be the gradient's memory */
	uint64_t rate;        /* bytes per second that a push or pull of an asynchronous job keeps to; 0: any */
	uint64_t deadline_ns; /* from now on; after it the link fails with the names of the workers that are missing */
	/* Called by the link's thread when the call has ended, before any thread that waits is told. NULL: none. */
	void (*ended)(void *context, enum esp_status status);
	/* Of a HUB_PULL: called by it when a chunk of the layout is in its place in weights. NULL: none. */
	void (*arrived)(void *context, uint32_t chunk);
	void *context;
};

/* The caller frees it by hub_op_put(), at any time. ESP_ENOMEM; ESP_ESTATE: nothing is declared. */
ESP_CHECKED enum esp_status hub_op_start(struct hub_link *link, const struct hub_op_call *call, struct hub_op **out,
                                         struct error *err);
/* ESP_PENDING: until_ns has come first. */
enum esp_status hub_op_wait(struct hub_op *op, uint64_t until_ns);
enum esp_status hub_op_test(const struct hub_op *op);
/* Of a HUB_PULL that has ended well: the least version of the weights; UINT64_MAX: the tensor has no elements. */
uint64_t hub_op_version(const struct hub_op *op);
/* Why a call that has ended has failed; ESP_OK: it has not. */
enum esp_status hub_op_failure(const struct hub_op *op, struct error *out);
void hub_op_put(struct hub_op *op);

/* Has this worker started a push of the tensor? */
bool hub_link_has_pushed(struct hub_link *link, uint32_t tensor);

/*
 * Holds for a parameter group from the next version on that this worker has not pushed for: *out_version. Every worker
 * does the same before it pushes for that version, or the job fails. ESP_EINVAL: no such group; ESP_ENOMEM; ESP_ESTATE.
 */
ESP_CHECKED enum esp_status hub_link_set_optimizer(struct hub_link *link, uint16_t group,
                                                   const struct optimizer *optimizer, uint64_t *out_version,
                                                   struct error *err);

/* ---- updates of an asynchronous job ---- */

/* 0: the job trains in rounds. */
uint32_t hub_link_delay_bound(const struct hub_link *link);
/* Of an update of all tensors. */
uint64_t hub_link_bytes(const struct hub_link *link);

struct hub_update {
	const void *const *gradients; /* by tensor; borrowed */
	uint64_t computed_from;       /* version of the weights that they were computed with */
	uint64_t epoch, position;     /* of a scheduler's order; position 0: none */
	uint64_t patience_ns;         /* how long the hub's gate may hold it for earlier positions */
	uint64_t rate;                /* bytes per second; 0: any */
	uint64_t deadline_ns;         /* from now on */
	/* Of a sum (fabric/gate.h); bundle 0: none. */
	uint64_t bundle, members;
	uint32_t aggregator;
	/* Sends it to the aggregator once the hub has granted it, in place of the data connections; NULL: does not. */
	void (*send)(void *context);
	/*
	 * Writes the gradients while they are pushed, once the hub has granted the update: tells by hub_link_fill() what is
	 * there, all of it in the end, or gives it up by hub_link_spoil(). NULL: they are there.
	 */
	void (*fill)(void *context);
	void *context;
};

struct hub_update_result {
	uint8_t why;             /* enum gate_why (fabric/gate.h) */
	uint64_t version, delay; /* of an applied update: the version after it */
	bool is_sent;            /* the hub granted it: its bytes have left */
	uint64_t took_ns;        /* from the grant until all of it was at the hub */
};

/*
 * Gives one update of all tensors to the hub, and returns when it is applied or dropped. ESP_ESTATE: another one is
 * under way; ESP_EUNSUPPORTED: the job trains in rounds; or why the link has failed.
 */
ESP_CHECKED enum esp_status hub_link_update(struct hub_link *link, const struct hub_update *update,
                                            struct hub_update_result *out, struct error *err);
struct hub_model {
	void *const *weights; /* by tensor */
	uint64_t rate;        /* bytes per second; 0: any */
	uint64_t deadline_ns; /* from now on */
	/* Called by the link's thread when a chunk of the layout is in its place. NULL: none. */
	void (*arrived)(void *context, uint32_t chunk);
	void *context;
};

/* Chunks of the layout below this one may be pushed. */
void hub_link_fill(struct hub_link *link, uint32_t chunks);
/*
 * Waits until the hub has said that it drops the update, and lets the rest of it go. The last chunk must not have been
 * let go before.
 */
void hub_link_spoil(struct hub_link *link);

/* Reads all tensors; *out_version: each chunk of them has at least this version. */
ESP_CHECKED enum esp_status hub_link_model(struct hub_link *link, const struct hub_model *model, uint64_t *out_version,
                                           struct error *err);

/* ESP_OK, or why the link has failed. */
enum esp_status hub_link_failure(struct hub_link *link, struct error *out);

struct hub_link_stats {
	uint64_t calls;                        /* that have ended well */
	uint64_t pushed_bytes, pulled_bytes;   /* gradients and weights of these */
	uint64_t sent_bytes, received_bytes;   /* payload of the data connections, frames included */
};
struct hub_link_stats hub_link_stats(struct hub_link *link);

#endif
