/*
 * distribution.h - how models go from the hub to the workers that wait for them: one tree for all.
 *
 * Requests wait while the hub's link is booked beyond the next batch. Then all of them are served with the same
 * version: chains of hosts pass the model on chunk by chunk (chain.h), and together they are a tree with the hub as its
 * root. Two workers of one host cost one transfer. Pure.
 */
#ifndef FABRIC_DISTRIBUTION_H
#define FABRIC_DISTRIBUTION_H

#include "fabric/chain.h"

#define DISTRIBUTION_REQUESTS_MOST 1024u
#define DISTRIBUTION_HUB UINT32_MAX /* as a source */

struct distribution_request {
	/* the caller's */
	uint32_t host, in, out;
	/* the result */
	bool is_served;
	uint32_t source;   /* the request whose worker passes it on; DISTRIBUTION_HUB */
	uint32_t outputs;  /* requests that are served from this one */
	uint32_t booking;  /* of its whole chain, at one request of it (CALENDAR_NONE: at another): to be given back */
	struct calendar_span span; /* of the transfer */
};

struct distribution_config {
	struct calendar *calendar;
	uint32_t hub;      /* the link out of the hub */
	uint64_t bytes, now, next_batch;
	bool is_tree;      /* false: each host gets it from the hub */
};

/* Returns how many are served: 0 while the hub's link is not free. */
uint32_t distribution_run(const struct distribution_config *config, struct distribution_request *requests,
                          uint32_t count);

#endif
