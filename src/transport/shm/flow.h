/*
 * flow.h - one channel between this rank and a peer: what is under way on it, both ways. Private to shm.
 *
 * A flow is made by the first message on its channel and goes when the channel is forgotten. Copies that
 * the peer has not consumed by then keep it alive, outside of the table: they are ours, and a
 * peer that is slower than we are may still need them. Flows and parcels are allocated when a
 * channel is first used, or is busier than ever before, and not in between.
 */
#ifndef TRANSPORT_SHM_FLOW_H
#define TRANSPORT_SHM_FLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A message that was left for a peer, and has data. */
struct parcel {
	struct parcel *next;
	void *cookie;   /* of a message that lies in the heap */
	uint32_t index;
	uint32_t slot;  /* SLOT_NONE: in the heap */
	void *reply;    /* where the peer may store its answer, until it has consumed the message; NULL: nowhere */
	uint32_t bytes; /* of that                */
};

/* A message of which we have a copy of our own, as its sender needs the slot. */
struct copy {
	struct copy *next;
	uint32_t index;
	_Alignas(16) uint8_t data[];
};

struct flow {
	uint16_t channel;
	bool is_forgotten; /* not in the table */

	/* Messages that we sent. */
	bool is_sending;     /* in the list: there are parcels                       */
	uint32_t stamp;      /* of this use of the channel; 0: nothing was sent      */
	uint32_t ahead;      /* all messages sent on it are below                    */
	uint32_t heap_count; /* parcels in the heap                                  */
	uint64_t seen;       /* the peer's counter, as it was last looked at         */
	const _Atomic uint64_t *counter; /* the peer's: stamp above, consumed below  */
	struct parcel *first, *last;
	struct flow *next_sending;

	/* Messages that were offered to us. */
	bool is_receiving;    /* in the list: not all was consumed                        */
	bool was_dropped;     /* messages that come are not wanted: all count as consumed */
	bool has_heap;        /* below heap_end: the sender waits for it to be consumed   */
	uint32_t their_stamp;
	uint32_t offers_end;  /* all messages offered to us are below                     */
	uint32_t heap_end;
	uint64_t published;   /* our counter                                              */
	_Atomic uint64_t *our_counter;
	struct copy *copies;  /* of what was not consumed */
	struct flow *next_receiving;
};

#define FLOW_PAGE 256u

struct flow_page {
	struct flow *flows[FLOW_PAGE];
};

/* The flows with one peer. */
struct flows {
	struct flow *sending, *receiving; /* lists; looked at on every poll */
	struct flow_page *pages[65536 / FLOW_PAGE];
};

/* NULL: there is none. */
struct flow *shm_flows_find(const struct flows *flows, uint16_t channel);
/* Makes it if need be; NULL: no memory. */
struct flow *shm_flows_get(struct flows *flows, uint16_t channel);
/* Takes it out of the table; it lives on until shm_flow_free(). */
void shm_flows_remove(struct flows *flows, struct flow *flow);
/* Frees the copies below end. */
void shm_flow_drop_copies(struct flow *flow, uint32_t end);
/* It is in no list any more. */
void shm_flow_free(struct flow *flow);
/* No flow is in a list any more. */
void shm_flows_fini(struct flows *flows);

/* Into the lists, unless it is there; and out of them, if it is. */
void shm_flow_list_sending(struct flows *flows, struct flow *flow);
void shm_flow_list_receiving(struct flows *flows, struct flow *flow);
void shm_flow_unlist_sending(struct flows *flows, struct flow *flow);
void shm_flow_unlist_receiving(struct flows *flows, struct flow *flow);

/* Parcels, kept when they are free. */
struct parcels {
	struct parcel *free;
	struct parcel_block *blocks;
};

struct parcel *shm_parcels_get(struct parcels *parcels); /* NULL: no memory */
void shm_parcels_put(struct parcels *parcels, struct parcel *parcel);
void shm_parcels_fini(struct parcels *parcels);

/* Numbers of messages wrap. */
static inline bool flow_is_below(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

#endif
