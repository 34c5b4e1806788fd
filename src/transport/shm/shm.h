/*
 * shm.h - the messages of one lane between ranks of one host, through memory that each shares read-only.
 *
 * The sender leaves a descriptor in a ring of its own segment and the receiver pulls: nobody
 * writes into anybody else's memory. Data that lies in memory from segment_alloc() is offered
 * where it lies, and its sent() comes when the peer has consumed it; other data is copied once
 * into a slot of the segment (once for all peers that get the same content) and its sent()
 * comes at once. One thread at a time drives a lane; only shm_wake() may be called by others.
 *
 * Sleeping is in two steps, so that the caller can wait for other things at the same time: shm_doze()
 * raises a flag that peers look at after they have left something, and looks once more; if
 * there is nothing, shm_descriptor() (an eventfd) becomes readable when there is. shm_rouse()
 * lowers the flag and empties the descriptor.
 *
 * Loss. Shared memory does not notice that a peer has died: somebody else does, and calls
 * shm_drop(). lost() is also called, with ESP_ECORRUPT, for a peer that leaves nonsense.
 */
#ifndef TRANSPORT_SHM_SHM_H
#define TRANSPORT_SHM_SHM_H

#include "transport/shm/segment.h"
#include "transport/transport.h"

struct shm;

struct shm_config {
	struct segment *segment; /* borrowed */
	uint32_t lane;
	uint32_t peers;          /* as the user numbers them                                           */
	const uint32_t *peer_of; /* by number in the segment: the user's number of that peer; copied   */
};

/* Borrows user and context until shm_close(). ESP_ENOMEM, ESP_ELIMIT (descriptors). */
ESP_CHECKED enum esp_status shm_open_lane(const struct shm_config *config, const struct transport_user *user, void *context,
                                          struct shm **out, struct error *err);
void shm_close(struct shm *shm); /* NULL is fine */

/* A peer, by its number in the segment: its segment, and the descriptor of its lane (shm_descriptor() over there) to wake it by. Borrows the view; takes the descriptor. */
void shm_adopt(struct shm *shm, uint32_t local, const struct segment_view *view, int wake_fd);
void shm_drop(struct shm *shm, uint32_t peer, enum esp_status why);
void shm_forget(struct shm *shm, uint16_t channel);

/* Moves what can be moved, a bounded amount per peer. Returns how much; 0: nothing. Does not sleep. */
unsigned shm_poll(struct shm *shm);
bool shm_doze(struct shm *shm); /* false: there is something to do, and the flag is down again */
void shm_rouse(struct shm *shm);
int shm_descriptor(const struct shm *shm);
/* Ends the sleep, the current or the next one. From any thread. */
void shm_wake(struct shm *shm);
/* Wakes the peer's lane if its flag is up: for those who leave something for it elsewhere in the segment. From any thread. */
void shm_nudge(const struct shm *shm, uint32_t local);

struct shm_stats {
	uint64_t messages_sent, messages_received;
	uint64_t copied_bytes;  /* into slots            */
	uint64_t offered_bytes; /* where they lie        */
	uint64_t wakes;         /* of peers that slept   */
	uint64_t slots_most;    /* that were taken at a time */
};
struct shm_stats shm_stats(const struct shm *shm);

#endif
