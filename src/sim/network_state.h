/* network_state.h - the parts of a modelled network. Private to src/sim. */
#ifndef SIM_NETWORK_STATE_H
#define SIM_NETWORK_STATE_H

#include "sim/network.h"
#include "sim/share.h"

/* A number of bytes on its way. */
struct transfer {
	struct share_flow flow; /* first: its address is the transfer's; FIFO uses the links alone */
	struct network *network;
	void *cookie;
	double wire;  /* bytes with headers                                     */
	double delay; /* of the path                                            */
	bool tells_head;
	/* FLUID */
	double left, since; /* bytes that had not left at that time             */
	double ends;        /* when the last will have, at this rate            */
	uint32_t place;     /* in the heap by ends; UINT32_MAX: not in it       */
	bool is_background;
	/* FIFO */
	uint32_t hop;  /* that its first byte is about to take                  */
	double tail;   /* when its last byte will be there                      */
	struct transfer *next_free;
};

/* Traffic of others, with what it needs to begin and end. */
struct background {
	struct network *network;
	const struct topology_background *what;
	struct transfer **transfers; /* flows, while they are there */
};

struct change {
	struct network *network;
	const struct topology_change *what;
};

/* Transfers come from slabs, so that all can be freed wherever they are. */
#define SLAB_TRANSFERS 256u
struct transfer_slab {
	struct transfer_slab *next;
	struct transfer transfers[SLAB_TRANSFERS];
};

struct link_state {
	double rate;  /* as it was set              */
	double taken; /* by traffic of a given rate */
	double free_at; /* FIFO: when its last transfer will have passed */
	struct agenda_queue queue; /* FIFO: when transfers have passed it  */
	uint64_t bytes;
};

struct network {
	struct network_config config;
	struct link_state *links;
	uint64_t class_bytes[TOPOLOGY_CLASSES];
	uint64_t transfers, solved;
	struct transfer *free;
	struct transfer_slab *slabs;
	struct background *backgrounds;
	struct change *changes;
	/* FLUID */
	struct share share;
	struct transfer **heap; /* by ends */
	uint32_t heap_count;
	size_t heap_room;
	double next_tick; /* when we are called next; INFINITY: not at all */
	uint32_t unseen; /* flows that came or went since rates were computed */
	bool solve_due;  /* at the end of this moment */
	bool solve_late; /* at the end of the grain   */
};

#define NETWORK_RATE_LEAST 0.01 /* of a link, that traffic of others leaves us */

/* The rate that a link has for us. */
static inline double network_rate(const struct network *network, uint32_t link)
{
	const struct link_state *state = &network->links[link];
	double left = state->rate - state->taken, least = state->rate * NETWORK_RATE_LEAST;

	return left > least ? left : least;
}

/*
 * Tell the user of a transfer: its first byte is there; its last has left; its last is there, which ends the transfer.
 */
void sim_network_headed(void *user);
void sim_network_left(void *user);
void sim_network_passed(void *user); /* left, and there at once */
void sim_network_arrived(void *user);
void sim_network_put(struct transfer *transfer);

void sim_fluid_start(struct transfer *transfer);
void sim_fluid_stop(struct transfer *transfer); /* background that ends */
void sim_fluid_changed(struct network *network, uint32_t link);

void sim_fifo_start(struct transfer *transfer);

#endif
