/*
 * hub_lane.h - a lane of a parameter hub: a thread that drives the data connections of all sessions on this lane.
 *
 * The control thread gives the lane *parts*, a session's chunks on this lane with a transport of their own, and
 * messages about them; the lane returns each message when it has been done, and tells of trouble. A part is the lane
 * thread's from OPEN to the return of CLOSE, and the control thread's before and after. Parts have turns by weight
 * (hub/store/store_turn.h); the lane thread sleeps while no connection can be moved.
 */
#ifndef HUB_SERVER_HUB_LANE_H
#define HUB_SERVER_HUB_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/loop.h"
#include "hub/store/store_lane.h"
#include "hub/store/store_turn.h"
#include "transport/tcp/tcp.h"

struct hub_lane;
struct hub_session;

enum hub_lane_kind {
	HUB_LANE_OPEN,    /* the part is the lane's from now on                                          */
	HUB_LANE_ADOPT,   /* a worker's connection; fd is taken                                          */
	HUB_LANE_LEAVE,   /* a worker will contribute no more; returned                                  */
	HUB_LANE_ASK,     /* returned with `workers`: those that rounds of the tensor wait for           */
	HUB_LANE_CLOSE,   /* all connections are closed; returned, the part is the control thread's again */
	HUB_LANE_SHARE,   /* gradients of a set of workers lie in `shared`, its pusher is `worker`       */
	HUB_LANE_TROUBLE, /* from the lane, once per part: `trouble`                                     */
	/* of asynchronous jobs */
	HUB_LANE_APPLY,   /* the worker's update, which is whole on all lanes                            */
	HUB_LANE_DROP,    /* the part of the worker's update that came                                     */
	HUB_LANE_LOST,    /* the worker is gone: its connection is closed                                */
	HUB_LANE_NEWS,    /* from the lane: part->whole and part->lost have been written                 */
};

struct hub_lane_msg {
	uint8_t kind; /* enum hub_lane_kind */
	struct hub_part *part;
	uint32_t worker;
	int fd;
	bool is_checked; /* ADOPT: data that is sent on it carries checksums */
	uint32_t tensor;
	uint32_t count;  /* APPLY: updates that the worker's is the sum of */
	uint64_t workers;
	struct store_shared shared;
	struct store_trouble trouble;
	struct hub_lane_msg *next;
};

/* Told by the lane thread after each turn of the part; read by the control thread at any time. */
struct hub_part_counts {
	_Atomic uint64_t rounds, pushed_bytes, pulled_bytes, parked, least_version;
};

struct hub_part {
	struct hub_session *session; /* the control thread's */
	struct hub_lane *lane;
	struct store_lane *store;    /* owned */
	struct tcp *tcp;             /* owned */
	uint32_t weight;
	struct hub_part_counts counts;
	/* the lane thread's */
	struct store_turn turn;
	bool is_active;  /* its last turn moved something */
	bool is_in_trouble;
	/* Of an asynchronous job: workers whose update is whole here, that were lost here; the control thread takes them.
	 */
	_Atomic uint64_t whole, lost;
	atomic_bool has_news; /* NEWS is under way */
	struct hub_lane_msg open, trouble, close, news; /* so that these never lack memory */
	struct hub_part *next;
};

/* Called by the loop's thread for each message that the lane returns; the message was made by hub_lane_send(). */
typedef void hub_lane_fn(void *context, const struct hub_lane_msg *msg);

/* Starts the thread "esp-hub-N", pinned to a core or not. Borrows the loop. ESP_ENOMEM, ESP_ELIMIT. */
ESP_CHECKED enum esp_status hub_lane_start(uint32_t number, bool is_pinned, struct loop *loop,
                                           hub_lane_fn *returned, void *context, struct hub_lane **out,
                                           struct error *err);
/* All parts have been closed. NULL is fine. */
void hub_lane_stop(struct hub_lane *lane);
uint32_t hub_lane_number(const struct hub_lane *lane);

/* Makes a part; it is the lane's after hub_part_open(). weight: at least 1. ESP_ENOMEM, ESP_ELIMIT. */
ESP_CHECKED enum esp_status hub_part_make(struct hub_lane *lane, struct hub_session *session,
                                          const struct store_lane_config *config, uint32_t weight,
                                          struct hub_part **out, struct error *err);
void hub_part_free(struct hub_part *part);

/* Copies the message. ESP_ENOMEM: nothing is done, and fd is still the caller's. */
ESP_CHECKED enum esp_status hub_lane_send(const struct hub_lane_msg *msg);
/* OPEN and CLOSE, which never fail: each part has memory for them. */
void hub_part_open(struct hub_part *part);
void hub_part_close(struct hub_part *part);

/* Nanoseconds that the lane thread has slept since it was started. Any thread. */
uint64_t hub_lane_idle_ns(const struct hub_lane *lane);

#endif
