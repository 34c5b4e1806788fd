/*
 * shm.h - the messages of one lane between ranks of one host, through memory that each shares.
 *
 * The sender leaves a descriptor in a ring of its own segment and the receiver pulls. It writes into the sender's
 * memory only where a message asks for it (transport_message.reply). Data that lies in memory from shm_segment_alloc()
 * is offered where it lies, and its sent() comes when the peer has consumed it; other data is copied once into a slot
 * of the segment (once for all peers that get the same content) and its sent() comes at once. No message is longer than
 * slot_bytes. One thread at a time drives a lane; only shm_wake() and shm_nudge() may be called by others. docs/shm.md
 * has the protocol.
 *
 * Sleeping is in two steps, so that the caller can wait for other things at the same time: shm_doze() raises a flag
 * that peers look at after they have left something, and looks once more; if there is nothing, shm_descriptor() (an
 * eventfd) becomes readable when there is. shm_rouse() lowers the flag and empties the descriptor.
 *
 * Loss. Shared memory does not notice that a peer has died, or has closed its lane: the user does, and calls
 * shm_drop(). lost() is also called with
 *     ESP_ECORRUPT  for a peer that leaves nonsense
 *     ESP_EPEER     for one whose user has failed, or that has dropped us
 *     ESP_ENOMEM    if there is no memory to remember what was sent to it or came from it
 *     another       the user's answer to offer() or credit()
 * Messages left for a lost peer are taken back, as it may be alive and read them.
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
	bool is_crowded;         /* ranks share cores: an awaited rank may not be running */
};

/*
 * Borrows user and context until shm_close(). ESP_ENOMEM, ESP_ELIMIT (descriptors). ESP_EINVAL: no such lane, or
 * it was opened before: a lane of a segment is opened once.
 */
ESP_CHECKED enum esp_status shm_open_lane(const struct shm_config *config, const struct transport_user *user,
                                          void *context, struct shm **out, struct error *err);
/*
 * No callback comes any more, and peers are not told; what was copied for them stays readable as long
 * as they map the segment. If memory is on loan it is taken back, and then they are told. NULL is fine.
 */
void shm_close(struct shm *shm);

/*
 * A peer, by its number in the segment: its segment, and the descriptor of its lane (shm_descriptor() over
 * there) to wake it by. Borrows the view until shm_close(); takes the descriptor.
 */
void shm_adopt(struct shm *shm, uint32_t local, const struct segment_view *view, int wake_fd);
/*
 * A peer that was lost, and has been adopted or not, is back, as a process with another segment or as one that has lost
 * this one too: this lane's half of what lies between the two is as at the beginning. Both do so before either gives
 * its descriptors to the other again; then shm_adopt(). No thread nudges the peer meanwhile. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status shm_readmit(struct shm *shm, uint32_t peer, struct error *err);
/* The peer is gone: lost() is called, once. By the user's number; one that is no peer here is ignored. */
void shm_drop(struct shm *shm, uint32_t peer, enum esp_status why);
/*
 * The channel has failed or is closed (transport.h). Memory that is on loan for it is taken back; copies stay for peers
 * that are slower. Messages offered to us count as consumed. The number may be used again after all have forgotten it,
 * unless memory was on loan then: the loans stay taken back.
 */
void shm_forget(struct shm *shm, uint16_t channel);

/*
 * Moves what can be moved, a bounded amount per peer; but asks first whether the user has failed by
 * itself, so its memory may be given back any time between two calls. Returns how much; 0: nothing.
 * Does not sleep. Also tells peers what was consumed, by whatever means, so call it once more after
 * other transports of the lane have moved something.
 */
unsigned shm_poll(struct shm *shm);
bool shm_doze(struct shm *shm); /* false: there is something to do, and the flag is down again */
void shm_rouse(struct shm *shm);
int shm_descriptor(const struct shm *shm);
/* Ends the sleep, the current or the next one. From any thread. */
void shm_wake(struct shm *shm);
/*
 * Wakes the peer's lane if its flag is up: after something was left for it elsewhere in the segment. From any thread.
 */
void shm_nudge(const struct shm *shm, uint32_t local);

struct shm_stats {
	uint64_t messages_sent, messages_received;
	uint64_t sent_bytes, received_bytes; /* their data                   */
	uint64_t copied_bytes;  /* into slots            */
	uint64_t offered_bytes; /* where they lie        */
	uint64_t stored_bytes;  /* by us, where they were wanted */
	uint64_t withdrawn_bytes; /* from peers that had not stored them when we could not wait any longer */
	uint64_t wakes;         /* of peers that slept; shm_nudge() is not counted */
	uint64_t slots_most;    /* that were taken at a time */
};
struct shm_stats shm_stats(const struct shm *shm);

/* ---- as a struct transport_ops ---- */

/* transport_config.options: what a lane over shared memory needs beside. */
struct shm_options {
	struct segment *segment; /* as in struct shm_config */
	uint32_t lane;
	const uint32_t *peer_of;
};

extern const struct transport_ops shm_ops;

#endif
