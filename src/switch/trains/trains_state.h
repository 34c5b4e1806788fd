/*
 * trains_state.h - the state of a socket for trains of packets; private to trains*.c.
 */
#ifndef SWITCH_TRAINS_TRAINS_STATE_H
#define SWITCH_TRAINS_TRAINS_STATE_H

#include "switch/trains/trains.h"

#define TRAINS_BATCH 16u         /* messages of one system call */
#define TRAINS_MESSAGE 65536u    /* bytes of a train that comes in */
#define TRAINS_ARENA (1u << 20)  /* bytes of packets that wait to be sent */
#define TRAINS_WAITING 2048u     /* packets that wait, counted by destination */

/* A packet that waits for one peer. */
struct trains_entry {
	uint32_t at, length; /* in the arena */
	uint32_t next;       /* of the same peer, by place + 1; 0: none */
};

struct trains {
	int fd;
	bool has_segments; /* the kernel cuts trains (UDP_SEGMENT) */
	uint32_t receive_buffer;
	struct trains_counters counters;
	uint8_t *incoming; /* TRAINS_BATCH messages */
	uint8_t *arena;
	uint32_t arena_used, put_at, put_length;
	struct trains_entry entries[TRAINS_WAITING];
	uint32_t entry_count;
	struct trains_peer *pending, **pending_end;
};

#endif
