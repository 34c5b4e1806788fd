/*
 * echo.h - latency: round trips of datagrams, one at a time, without the time that processes need to wake up.
 *
 *     asker    t1 ──── request s ────▶ t2      t1 to t4 are taken by the kernels, as packets leave and arrive.
 *              t4 ◀─── reply s ─────── t3      The reply to s carries how long the previous request was kept,
 *                                              t3 - t2, as its own t3 is known only once it has left:
 *                                              (t4 - t1) - (t3 - t2) is the network's time, and no clock is
 *                                              compared with another host's.
 *
 * Requests are sent in short trains that are spread over the round: requests of one train all meet the same
 * queues, so a dozen requests within a millisecond are worth one. Each host asks its partner of the round and
 * answers every host that proves to be of this session. If the kernel provides no timestamps, those of the
 * process are used.
 *
 * Pure: packets and times come in, packets go out. Two clocks: `now_ns` for waiting (monotonic), stamps for
 * measuring.
 */
#ifndef NETWORK_PROBE_ECHO_H
#define NETWORK_PROBE_ECHO_H

#include "network/probe/packet.h"
#include "network/probe/samples.h"

#define ECHO_ASKERS 4u /* hosts whose last request is remembered: rounds overlap a little where clocks differ */
#define ECHO_NEVER UINT64_MAX

struct echo_asker {
	uint32_t host, round, sequence;
	uint64_t arrived, left; /* 0: unknown */
};

/* How a partner is asked. */
struct echo_pace {
	uint32_t asks;        /* number of requests */
	uint32_t train;       /* consecutive requests; 0: all */
	uint64_t gap_ns;      /* from the beginning of a train to that of the next */
	uint64_t patience_ns; /* for each answer */
};

struct echo {
	const struct packet_session *session; /* borrowed */
	uint32_t hosts, self;

	/* The round: */
	uint32_t round, partner; /* partner UINT32_MAX: none */
	uint32_t sequence;       /* of the last request; continues from round to round */
	struct echo_pace pace;
	uint32_t left_to_ask;
	uint32_t left_of_train;
	uint64_t next_train_ns;
	bool waits;              /* the reply to `sequence` is awaited */
	uint64_t until_ns;       /* until then */
	uint64_t left;           /* when that request left */
	bool has_half;           /* t4 - t1 of half_sequence is known, the rest comes with the next reply */
	uint32_t half_sequence;
	uint64_t half_ns;
	struct samples *samples; /* borrowed */
	uint32_t lost;           /* requests without a reply in time */

	struct echo_asker askers[ECHO_ASKERS];
	uint32_t next_asker;
};

/* session: borrowed. */
void probe_echo_init(struct echo *echo, const struct packet_session *session, uint32_t hosts, uint32_t self);

/*
 * Begins a round, with a partner or UINT32_MAX (pace and samples are then unused). Packets of the previous
 * round do not count any more. samples (borrowed) gets round trips in seconds.
 */
void probe_echo_begin(struct echo *echo, uint32_t round, uint32_t partner, const struct echo_pace *pace,
                      struct samples *samples);

/*
 * True: `out` is to be sent to the partner now; stamp: the current time. Otherwise *out_wake_ns is the next
 * time to call.
 */
bool probe_echo_ask(struct echo *echo, uint64_t now_ns, uint64_t stamp, uint8_t out[PACKET_BYTES],
                    uint64_t *out_wake_ns);

/* Bytes have arrived. True: `out` is to be sent back to their sender. */
bool probe_echo_receive(struct echo *echo, const uint8_t *bytes, size_t length, uint64_t arrived, uint64_t stamp,
                        uint8_t out[PACKET_BYTES]);

/* Tells when one of our packets has left. */
void probe_echo_left(struct echo *echo, const uint8_t *bytes, size_t length, uint64_t stamp);

#endif
