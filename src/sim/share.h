/*
 * share.h - max-min fair shares: the rate of each flow on links that it shares with others.
 *
 * Rates are max-min fair if every flow has a *bottleneck*: a link that is full and on which no flow has more. There is
 * exactly one such set of rates. It is found by progressive filling: the link with the least to give to each of its
 * flows is the bottleneck of all of them; their rates are taken from the other links, and so on.
 *
 * When flows come and go, sim_share_solve() computes anew only rates that may have changed: the new flows, and those
 * whose bottleneck was touched. It fills the links with these, all other rates left as they are, and looks whether all
 * flows on the links touched still have a bottleneck. Flows that do not are taken in, and it begins again. The rates at
 * its end have a bottleneck for every flow, so it is *the* solution, whatever was left alone. Pure; one thread.
 */
#ifndef SIM_SHARE_H
#define SIM_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "network/topo/topology.h"

/* Embedded in what is moved. */
struct share_flow {
	double rate; /* bytes per second; 0 until it was solved */
	uint32_t hops;
	uint32_t bottleneck; /* a link, or TOPOLOGY_NONE: not solved yet       */
	uint32_t link[TOPOLOGY_HOPS_MAX];
	/* private to share.c */
	uint32_t at[TOPOLOGY_HOPS_MAX]; /* where it stands in the list of each */
	uint32_t set;                   /* the solve that has taken it in      */
	bool frozen;
	double before; /* its rate before this solve */
};

/* A flow on a link, and which of its hops that is. */
struct share_entry {
	struct share_flow *flow;
	uint32_t hop;
};

struct share_link {
	double capacity;
	struct share_entry *flows;
	uint32_t count;
	size_t room;
	bool changed;      /* since the last solve                   */
	uint32_t set;      /* the solve that has touched it          */
	uint32_t inside;   /* flows that are solved for               */
	uint32_t open;     /* while filling: those without a rate yet */
	double left;       /* while filling: capacity for those       */
};

struct share_slot {
	double least;
	uint32_t link;
};

struct share {
	struct share_link *links;
	uint32_t link_count;
	uint32_t set; /* number of this solve */
	uint32_t *changed, changed_count; /* links that changed since the last solve */
	uint32_t *touched, touched_count; /* links that matter in this solve         */
	struct share_flow **flows;        /* flows that are solved for               */
	uint32_t flow_count;
	size_t flow_room;
	struct share_slot *heap; /* of links by what each flow could have */
	uint32_t heap_count;
	size_t heap_room;
	uint64_t flows_seen;
	bool failed; /* out of memory */
};

/* capacity is set for each link by sim_share_set_capacity(). ESP_ENOMEM. */
ESP_CHECKED enum esp_status sim_share_init(struct share *share, uint32_t links, struct error *err);
void sim_share_fini(struct share *share);

/* flow has its hops (at least one) and links set. It has its rate after the next solve. */
void sim_share_add(struct share *share, struct share_flow *flow);
void sim_share_remove(struct share *share, struct share_flow *flow);
void sim_share_set_capacity(struct share *share, uint32_t link, double capacity);

/* Calls changed() for each flow that has another rate than before. */
void sim_share_solve(struct share *share, void (*changed)(void *user, struct share_flow *flow, double before),
                     void *user);

#endif
