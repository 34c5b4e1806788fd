/*
 * bandwidth.h - the bandwidth of each rail of a job, measured when it starts, and the weights of lanes that follow.
 * Opened by the thread that opens the rank; receivers are threads of their own; I/O on probe connections.
 *
 * Only a job with several rails measures. The first rank of each host sends to the first rank of the next host, on one
 * rail after the other, for some hundredths of a second and once again, over connections that are proved like any
 * other; the receiver replies with the rate. A rail's bandwidth is that of its slowest pair of hosts, which all ranks
 * learn in their first barrier. A rail that cannot be reached, or on which nothing arrives, is not used, with a
 * warning.
 *
 * Lane l belongs to rail l modulo their number. A call's data is split among the lanes in proportion to the weights of
 * their rails.
 */
#ifndef RANK_RAIL_BANDWIDTH_H
#define RANK_RAIL_BANDWIDTH_H

#include <stdatomic.h>

#include "rank/failure.h"
#include "node/net/route.h"

#define BANDWIDTH_LANES 64u

struct rank;

struct bandwidth {
	uint64_t rates[RAILS_MOST];   /* bytes per second from this rank; UINT64_MAX: another rank measures */
	uint32_t weights[RAILS_MOST]; /* of rails, valid after bandwidth_settle() */

	/* Lanes in the order in which calls take them, with their weights; lanes beyond the first `lanes` are not used. */
	atomic_bool settled;
	uint32_t lanes;
	uint8_t lane_order[BANDWIDTH_LANES];
	uint64_t lane_weights[BANDWIDTH_LANES];

	/* Guarded by context->lock. */
	int fds[RAILS_MOST];          /* dialled and not yet taken; -1: none */
	bool failed[RAILS_MOST];      /* cannot be reached */
	uint32_t receivers;           /* threads that run */
};

void bandwidth_init(struct bandwidth *bandwidth, uint32_t lanes);
/* Waits for the receivers, which end within some seconds. */
void bandwidth_fini(struct rank *context);

/* Measures the rails from this rank, if that is its part, into rates. Blocks. */
void bandwidth_measure(struct rank *context);
/* Sets the weights. rates: the slowest of each rail, the same on all ranks. ESP_ELINK: no rail is left. */
ESP_CHECKED enum esp_status bandwidth_settle(struct rank *context, const uint64_t *rates, struct failure *failure);
/* The same for a job with one rail. */
void bandwidth_settle_alone(struct rank *context);
/* The same with the weights of the setting rail_weights. */
ESP_CHECKED enum esp_status bandwidth_settle_as_set(struct rank *context, struct failure *failure);

/* Pure: the order and weights of lanes on rails of these weights. */
void bandwidth_order(struct bandwidth *bandwidth, uint32_t lanes, uint32_t rails);

/* Events of the control; control thread. */
void bandwidth_connected(struct rank *context, uint32_t rail, int fd, bool dialled);
void bandwidth_unreachable(struct rank *context, uint32_t peer, uint32_t rail, const struct error *why);

#endif
