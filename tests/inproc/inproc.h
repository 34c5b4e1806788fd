/*
 * inproc.h - a network inside one process, in virtual time, made from a seed.
 *
 * Links between the lanes of nodes deliver in order, but each at its own pace: delays,
 * the sizes of fragments and the way memory is handled are drawn from the seed, so links
 * overtake each other and one seed replays one run exactly, where large data lies within its cache lines as it did (transport_shift()). Nodes can be lost. One thread.
 *
 * Three ways to carry data, as real transports have them:
 *     copy   bytes are copied when they are sent, as a socket does
 *     late   bytes are read from the sender's memory when they arrive, so that a sender that
 *            overwrites too early is caught
 *     share  the receiver reads the sender's memory when its turn comes, as shared memory does;
 *            so memory that was offered stays mapped until the receiver has forgotten the
 *            channel too, even if it was revoked
 *
 * A node that loses a peer, because what came from it cannot be, goes on with the others; the
 * peer sees its connection to that node close after a while.
 */
#ifndef TESTS_INPROC_INPROC_H
#define TESTS_INPROC_INPROC_H

#include "transport/transport.h"

struct inproc;

enum inproc_carry { INPROC_COPY, INPROC_LATE, INPROC_SHARE, INPROC_MIXED /* drawn for each pair of nodes */ };

struct inproc_config {
	uint64_t seed;
	uint32_t nodes;
	uint32_t lanes;
	uint64_t delay_ns;      /* most that a fragment takes; drawn from 0 up           */
	uint32_t fragment_most; /* bytes; drawn from 1 up; 0: messages are not cut       */
	uint32_t flight_most;   /* fragments under way on a link; 0: any number          */
	enum inproc_carry carry;
	bool checked;            /* messages carry checksums (not where memory is shared)     */
	uint32_t corrupt_one_in; /* of so many fragments, one has a bit turned over; 0: none  */
};

ESP_CHECKED enum esp_status inproc_open(const struct inproc_config *config, struct inproc **out, struct error *err);
void inproc_close(struct inproc *loop);

/* Whose lane it is; user and context are borrowed until inproc_close(). */
void inproc_attach(struct inproc *loop, uint32_t node, uint32_t lane, const struct transport_user *user, void *context);

/* Something may be ready to send that the loop did not cause (a call was started). */
void inproc_poke(struct inproc *loop, uint32_t node, uint32_t lane);

/* The channel has failed or is closed on this lane (transport.h). Not from within a callback. */
void inproc_forget(struct inproc *loop, uint32_t node, uint32_t lane, uint16_t channel);

/* Calls act(context) after delay_ns of virtual time. */
void inproc_after(struct inproc *loop, uint64_t delay_ns, void (*act)(void *context), void *context);

/* The node is gone: it sends and receives nothing more, and all others are told so after a while. */
void inproc_kill(struct inproc *loop, uint32_t node);

/* Delivers the next event; false: nothing is under way. */
bool inproc_turn(struct inproc *loop);

uint64_t inproc_now(const struct inproc *loop);
uint64_t inproc_events(const struct inproc *loop); /* so far */

#endif
