/*
 * echo.h - latency: datagrams there and back, one at a time, without the time that anybody needs to wake up.
 *
 *     asker    t1 ──── request s ────▶ t2      t1 to t4 are taken by the kernels, as packets leave and arrive. The reply
 *              t4 ◀─── reply s ─────── t3      to s says how long the request before it was kept, t3 - t2, as its own t3 is
 *                                              not known before it has left: (t4 - t1) - (t3 - t2) is the network's time,
 *                                              and no clock is compared with another host's.
 *
 * Requests go in short trains that are spread over the round: those of one train all meet the same queues, so a pair that is asked
 * a dozen times in a millisecond has been asked once. Each host asks its partner of the round and answers whoever proves to be of this probing. Where the kernel gives no times those of
 * the process are used; they come with the same calls.
 *
 * Pure: packets and times come in, packets go out. Two clocks: `now_ns` for waiting (monotonic), stamps for measuring.
 */
#ifndef NETWORK_PROBE_ECHO_H
#define NETWORK_PROBE_ECHO_H

#include "network/probe/packet.h"
#include "network/probe/samples.h"

#define ECHO_ASKERS 4u /* whose last request is remembered: hosts whose clocks run ahead or behind overlap a little */
#define ECHO_NEVER UINT64_MAX

struct echo_asker {
	uint32_t host, round, sequence;
	uint64_t arrived, left; /* 0: not known */
};

/* How a partner is asked. */
struct echo_pace {
	uint32_t asks;        /* at most                                              */
	uint32_t train;       /* of them one after the other; 0: all                  */
	uint64_t gap_ns;      /* from the beginning of a train to that of the next    */
	uint64_t patience_ns; /* for each answer                                      */
};

struct echo {
	const struct packet_session *session; /* borrowed */
	uint32_t hosts, self;

	/* The round: */
	uint32_t round, partner; /* partner UINT32_MAX: nobody is asked */
	uint32_t sequence;       /* of the last request; goes on from round to round */
	struct echo_pace pace;
	uint32_t left_to_ask;
	uint32_t left_of_train;
	uint64_t next_train_ns;
	bool waits;              /* for the reply to `sequence` */
	uint64_t until_ns;       /* how long                    */
	uint64_t left;           /* when that request left      */
	bool has_half;           /* t4 - t1 of half_sequence is known, and the rest comes with the next reply */
	uint32_t half_sequence;
	uint64_t half_ns;
	struct samples *samples; /* borrowed */
	uint32_t lost;           /* requests without a reply in time */

	struct echo_asker askers[ECHO_ASKERS];
	uint32_t next_asker;
};

/* session: borrowed. */
void echo_init(struct echo *echo, const struct packet_session *session, uint32_t hosts, uint32_t self);

/*
 * A new round, with a partner or with UINT32_MAX (pace and samples are then not looked at). What belongs to the round before does not
 * count any more. samples (borrowed) gets seconds, there and back.
 */
void echo_begin(struct echo *echo, uint32_t round, uint32_t partner, const struct echo_pace *pace, struct samples *samples);

/* True: out is to be sent to the partner now; stamp: the time just now. Otherwise *out_wake_ns says when to ask again. */
bool echo_ask(struct echo *echo, uint64_t now_ns, uint64_t stamp, uint8_t out[PACKET_BYTES], uint64_t *out_wake_ns);

/* Bytes have come. True: out is to be sent back to where they came from. */
bool echo_receive(struct echo *echo, const uint8_t *bytes, size_t length, uint64_t arrived, uint64_t stamp, uint8_t out[PACKET_BYTES]);

/* When one of our packets has really left. */
void echo_left(struct echo *echo, const uint8_t *bytes, size_t length, uint64_t stamp);

#endif
