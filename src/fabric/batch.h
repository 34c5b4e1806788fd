/*
 * batch.h - decides a batch of updates: their order, which are dropped, and by which way each goes.
 *
 *     BATCH_DIRECT    each to the hub (order.h)
 *     BATCH_BUNDLES   the order is cut into direct updates and groups, each added at one aggregator (bundle.h)
 *     BATCH_CHAINS    hosts add and pass on chunk by chunk (chain.h)
 *
 * An update of a chain may get an earlier or later place than order.h gave it, as chains are made by links: after each
 * chain all updates that are left can still be in time, or those that cannot join the chain. Groups take consecutive
 * places, and each update's place is at most its deadline. Where the hub's link is booked beyond the next batch, no
 * chain is begun: updates that come meanwhile join those that wait. Pure.
 */
#ifndef FABRIC_BATCH_H
#define FABRIC_BATCH_H

#include "base/rng.h"
#include "fabric/bundle.h"
#include "fabric/chain.h"
#include "fabric/order.h"

#define BATCH_UPDATES_MOST 1024u
#define BATCH_AGGREGATORS 8u /* of BATCH_BUNDLES: drawn anew for each batch */
#define BATCH_HUB UINT32_MAX /* as a next hop */

enum batch_way { BATCH_DIRECT, BATCH_BUNDLES, BATCH_CHAINS };
extern const char *const batch_way_names[]; /* "direct", "bundles", "chains", NULL */

struct batch_update {
	/* the caller's */
	uint32_t host, in, out;
	uint64_t bytes, from;
	int64_t deadline;
	bool has_waited;
	/* the result */
	uint8_t fate;        /* enum order_fate; ORDER_UNBOOKED also: not in this batch */
	uint32_t place;      /* of ORDER_SENT, from 1 */
	uint32_t group;      /* from 1; 0: it goes by itself */
	uint32_t next;       /* the update whose worker it is sent to; BATCH_HUB */
	uint32_t inputs;     /* updates that are sent to this one's worker, which adds them */
	uint32_t booking;    /* of its own way; CALENDAR_NONE: the group's, or its own host */
	struct calendar_span span;
	uint64_t there;      /* when the hub has it */
};

struct batch_group {
	uint32_t first, members; /* place of the first member */
	uint32_t carrier;    /* the update whose worker sends to the hub */
	uint32_t relay;      /* BATCH_BUNDLES: the aggregator's update, of this group or not; else the carrier */
	uint32_t booking;
	struct calendar_span span;
};

struct batch_config {
	struct calendar *calendar;
	uint32_t hub;          /* the link into the hub */
	enum batch_way way;
	enum bundle_goal goal; /* BATCH_BUNDLES */
	uint32_t order_flags;  /* enum order_flag */
	uint64_t now, next_batch; /* nothing is booked that would begin from next_batch on, but what has waited */
	struct rng *rng;       /* BATCH_BUNDLES: draws aggregators */
};

struct batch {
	uint32_t sent, groups;
	struct batch_group group[BATCH_UPDATES_MOST]; /* of number i + 1 */
	struct order_update orders[BATCH_UPDATES_MOST];   /* batch_run()'s own */
	struct bundle_update bundles[BATCH_UPDATES_MOST];
};

/* Decides count updates, at most BATCH_UPDATES_MOST; bookings are the caller's to give back. */
void batch_run(const struct batch_config *config, struct batch_update *updates, uint32_t count, struct batch *out);

#endif
