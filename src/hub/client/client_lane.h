/*
 * client_lane.h - the requests of one worker to a parameter hub on one lane.
 *
 * The user of a transport with one peer, the hub (number 0). Operations on tensors are started in any order; the lane
 * cuts its part of each into requests per chunk (wire/hub_frame.h), reads gradients and writes weights where the caller
 * has them, and reports each operation once, when all of its chunks on this lane are answered. A chunk whose former
 * request is unanswered holds up the requests behind it. Pure: no I/O, no clock, no allocation after opening; one
 * thread at a time.
 *
 * A push is answered once all workers have pushed the chunk, and requests leave in order. So workers that push tensors
 * in different orders could wait for each other: a worker starts the pushes of all tensors of a round before it starts
 * a second operation on any of them.
 *
 * Of an asynchronous job a push is answered once the whole update is applied or dropped. Pushes and pulls may be
 * paced: each takes its bytes from a budget that the owner fills, and waits while there is none.
 */
#ifndef HUB_CLIENT_CLIENT_LANE_H
#define HUB_CLIENT_CLIENT_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "hub/layout.h"
#include "math/optimizer.h"
#include "transport/transport.h"
#include "wire/hub_frame.h"

/* The part of one lane in an operation; the caller's memory, which stays until the part is handed out as done. */
struct client_part {
	uint8_t kind; /* HUB_PUSH, HUB_PULL, HUB_PUSHPULL, HUB_SHARED, HUB_SET, HUB_READ + a, HUB_WRITE + a: the caller's */
	uint32_t tensor;      /* the caller's */
	uint32_t before;      /* WRITE: rounds before version 0 */
	const void *gradient; /* of the tensor's first element: PUSH, PUSHPULL, SET, WRITE; borrowed until done */
	void *weights; /* PULL, PUSHPULL, READ; may be the same as gradient: a chunk is answered after it has been sent */
	void *cookie;         /* the caller's */
	/* PULL: a chunk of the layout is in its place in weights. NULL: none. */
	void (*arrived)(void *context, uint32_t chunk);
	void *context;

	enum esp_status status; /* once done */
	uint64_t version; /* once done: the least version that its answers have told; UINT64_MAX: it has no chunk here */
	/* private */
	struct client_part *next;
	uint32_t sent, left; /* chunks that were requested; that are not answered */
};

struct client_lane_config {
	const struct hub_layout *layout; /* borrowed */
	uint32_t lane;
	bool is_async;   /* other workers' updates are applied between two requests */
	/* Borrowed: bytes that pushes, and answers to pulls, may still take, shared by lanes of one thread. NULL: any. */
	int64_t *push_budget, *pull_budget;
	/* Borrowed: chunks of the layout below this one may be pushed. NULL: all. */
	const _Atomic uint32_t *ready;
};

struct client_lane;

ESP_CHECKED enum esp_status client_lane_open(const struct client_lane_config *config, struct client_lane **out,
                                             struct error *err);
void client_lane_close(struct client_lane *lane); /* NULL is fine; the transport has been closed, parts are forgotten */

extern const struct transport_user client_lane_user;

/* A budget has been filled. */
void client_lane_refill(struct client_lane *lane);
/* Never fails by itself: after a failure the part is done at once, with its status. */
void client_lane_start(struct client_lane *lane, struct client_part *part);
/*
 * Holds for a parameter group from version `version` on; sent after all parts that were started before, and before all
 * that are started later. ESP_ELIMIT: too many unsent; or why the lane has failed.
 */
ESP_CHECKED enum esp_status client_lane_hyper(struct client_lane *lane, uint16_t group, uint64_t version,
                                              const struct optimizer *optimizer);
/* The next part that is done; NULL: none. */
struct client_part *client_lane_take_done(struct client_lane *lane);

/* All parts end with this status, now and from now on; no memory of callers is touched any more once the transport has
 * polled. */
void client_lane_fail(struct client_lane *lane, enum esp_status status);
/* ESP_OK, or why it failed: the connection broke (as the transport says), or the hub broke the protocol (ESP_ECORRUPT).
 */
enum esp_status client_lane_failure(const struct client_lane *lane);
/* The version of the tensor's chunks on this lane that this worker has, the least; 0 where it has none. */
uint64_t client_lane_version(const struct client_lane *lane, uint32_t tensor);

#endif
