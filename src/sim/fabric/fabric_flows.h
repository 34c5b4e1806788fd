/*
 * fabric_flows.h - transfers as fluid flows over any set of links, each with a rate that it keeps to.
 *
 * A flow uses all of its links at once, so a chain of hosts that passes chunks on is one flow. Flows share links max-min
 * fairly, or one after the other, and none is faster than its cap. Beside sim/network.h: that one has routes of a topology and no caps, and its
 * flows have a few hops each. Time is nanoseconds. Pure.
 */
#ifndef SIM_FABRIC_FLOWS_H
#define SIM_FABRIC_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#define FABRIC_LINKS_MOST 160u
#define FABRIC_FLOWS_MOST 192u
#define FABRIC_PATH_MOST 160u

struct fabric_flow {
	bool is_open;
	double left, rate, cap; /* bytes; bytes per second; cap 0: none */
	uint64_t number;        /* of its start */
	uint32_t count, links[FABRIC_PATH_MOST];
	uint64_t cookie;
};

struct fabric_flows {
	uint64_t now;
	bool has_turns;           /* links serve their flows one after the other, as they have started */
	uint64_t started;
	bool is_dirty;            /* rates are to be computed anew */
	double rates[FABRIC_LINKS_MOST];
	uint32_t links, open;
	struct fabric_flow flow[FABRIC_FLOWS_MOST];
};

void fabric_flows_init(struct fabric_flows *flows, uint32_t links);
/* Bytes per second, from now on. */
void fabric_flows_set_rate(struct fabric_flows *flows, uint32_t link, double rate);
/* Returns the flow's number. links: each once. */
uint32_t fabric_flows_start(struct fabric_flows *flows, const uint32_t *links, uint32_t count, uint64_t bytes,
                            double cap, uint64_t cookie);
void fabric_flows_stop(struct fabric_flows *flows, uint64_t cookie); /* nothing if there is none */
/* When the next flow ends, if nothing changes; UINT64_MAX: none does. */
uint64_t fabric_flows_due(struct fabric_flows *flows);
/* Time goes on, not beyond the next end. */
void fabric_flows_advance(struct fabric_flows *flows, uint64_t now);
/* A flow that is through by now: it is closed. */
bool fabric_flows_ended(struct fabric_flows *flows, uint64_t *out_cookie);

#endif
