/*
 * bandwidth.h - how fast each rail of a job is, measured when it starts; and what follows for lanes.
 *
 * Only a job with several rails does this. The first rank of each host sends to the first rank of
 * the next host, on one rail after the other, for some hundredths of a second and once again, over connections that are
 * proved like any other; the receiver says how fast it came. Of each rail the slowest way counts, and all ranks
 * agree on it by the call with which they meet. A rail that cannot be reached, or on which nothing
 * arrives, is not used; a warning says so.
 *
 * Lane l belongs to rail l modulo their number. What a call moves is cut over the lanes in proportion
 * to the weights of their rails.
 */
#ifndef RANK_RAIL_BANDWIDTH_H
#define RANK_RAIL_BANDWIDTH_H

#include <stdatomic.h>

#include "rank/failure.h"
#include "node/net/route.h"

#define BANDWIDTH_LANES 64u

struct rank;

struct bandwidth {
	uint64_t rates[RAILS_MOST];   /* bytes per second on the way from this rank; UINT64_MAX: not ours to measure */
	uint32_t weights[RAILS_MOST]; /* of rails, once all have met */

	/* Lanes in the order in which calls take them, and what each is worth; those behind the first `lanes` are not used. */
	atomic_bool settled;
	uint32_t lanes;
	uint8_t lane_order[BANDWIDTH_LANES];
	uint64_t lane_weights[BANDWIDTH_LANES];

	/* With context->lock. */
	int fds[RAILS_MOST];          /* dialled and not yet taken; -1: none */
	bool failed[RAILS_MOST];      /* cannot be reached                   */
	uint32_t receivers;           /* threads that are at it              */
};

void bandwidth_init(struct bandwidth *bandwidth, uint32_t lanes);
/* Waits for the receivers, some seconds at most. */
void bandwidth_fini(struct rank *context);

/* Measures this rank's part, if there is one: into rates. */
void bandwidth_measure(struct rank *context);
/* All have met; rates: the slowest of each rail, as all ranks know them. ESP_ELINK: no rail is left. */
ESP_CHECKED enum esp_status bandwidth_settle(struct rank *context, const uint64_t *rates, struct failure *failure);
/* The same for a job with one rail. */
void bandwidth_settle_alone(struct rank *context);
/* The same with the weights of the setting. */
ESP_CHECKED enum esp_status bandwidth_settle_as_set(struct rank *context, struct failure *failure);

/* Pure: the order and weights of lanes on rails of these weights. */
void bandwidth_order(struct bandwidth *bandwidth, uint32_t lanes, uint32_t rails);

/* The control's events. */
void bandwidth_connected(struct rank *context, uint32_t rail, int fd, bool dialled);
void bandwidth_unreachable(struct rank *context, uint32_t peer, uint32_t rail, const struct error *why);

#endif
