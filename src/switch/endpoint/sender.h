/*
 * sender.h - a member's contributions to one flow: a window of numbers, each repaired by itself.
 *
 * Every chunk of a stream gets a number, in an order that is the same on all members, for any owner; a member's own
 * numbers count as acknowledged once they are complete here. A number goes out as an original through the switch; once
 * as a resend through the switch (W1), which takes a partial sum along; from then on straight to its owner and through
 * the switch in turn (W2), as either way may be closed. The first result of a number counts (W3). An owner may ask for
 * a number that others wait for (W4).
 *
 * Pure: events and time in, packets out. All memory is taken when it is opened. One thread at a time.
 */
#ifndef SWITCH_ENDPOINT_SENDER_H
#define SWITCH_ENDPOINT_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "switch/endpoint/endpoint.h"
#include "switch/endpoint/patience.h"
#include "switch/endpoint/shape.h"
#include "switch/endpoint/tag.h"
#include "switch/endpoint/window.h"

#define SENDER_NUMBERS (UINT32_C(1) << 31) /* of one flow: then comes a new flow */

struct sender_config {
	uint64_t flow;
	uint16_t self; /* a member of the shape */
	const struct shape *shape;
	const struct tag_keys *keys;
	uint32_t window;       /* numbers; a power of two, equal on all members */
	uint32_t owners;       /* owners are below it */
	const uint16_t *next;  /* by owner: its switch, for headers; NULL: ATP_NO_NEXT for all. Borrowed. */
	struct window_config congestion;
	uint64_t rto_floor_ns; /* not below the lateness of the caller's timer */
	uint64_t rto_cap_ns;
};

/* One chunk of the caller. words are borrowed until the number is acknowledged, and do not change. */
struct sender_element {
	const uint32_t *words; /* NULL if self is the owner */
	uint32_t call;
	uint16_t count;
	uint16_t owner;
	uint8_t scale, kind;
};

enum sender_event {
	SENDER_NEW,      /* the first result: its words are the sum */
	SENDER_REPEATED, /* W3 */
	SENDER_REFUSED,  /* not a result of a number in flight, or its tag or contents are wrong */
};

struct sender;

ESP_CHECKED enum esp_status sender_open(const struct sender_config *config, struct sender **out, struct error *err);
void sender_close(struct sender *sender);

/* Gives the next number to an element. False: the window of numbers is full. Not at SENDER_NUMBERS. */
bool sender_offer(struct sender *sender, const struct sender_element *element, uint32_t *out_sequence);
/* An own number is complete here. */
void sender_own_complete(struct sender *sender, uint32_t sequence);

/* The latest round trip to the switch: no time-out is shorter than two. 0: not known. */
void sender_expect(struct sender *sender, uint64_t round_trip_ns);

/* The next packet to send now; false: none before sender_wake_ns(). */
bool sender_next(struct sender *sender, uint64_t now_ns, struct endpoint_out *out);
/* 0: sender_next() has something at once. UINT64_MAX: nothing until an event. */
uint64_t sender_wake_ns(const struct sender *sender);

/* A result that atp_packet_valid() accepts. */
enum sender_event sender_result(struct sender *sender, const struct atp_packet *packet, const void *words,
                                uint64_t now_ns);

/* An ask: the number is repaired at once if it is in flight; if not, it will go straight, with all before it (W4). */
void sender_ask(struct sender *sender, const struct atp_packet *packet);

/*
 * Does a switch help? If not, packets go straight to owners; packets in flight through a switch follow at once.
 */
void sender_use_switch(struct sender *sender, bool use);

/*
 * Tells every owner that all results have come, as soon as they have: one bye each, one through the switch to all, and
 * more for each repeated result.
 */
void sender_finish(struct sender *sender);

uint32_t sender_begin(const struct sender *sender); /* the lowest number without a result */
uint32_t sender_end(const struct sender *sender);   /* the next number */

struct sender_counters {
	uint64_t originals, direct; /* first transmissions: through a switch, straight to an owner */
	uint64_t resends, bypasses; /* W1, W2 */
	uint64_t fast, timeouts;    /* causes of repairs: results of higher numbers, or time */
	uint64_t results, repeated, refused;
	uint64_t asks;
};
const struct sender_counters *sender_counters(const struct sender *sender);
void sender_counters_add(struct sender_counters *to, const struct sender_counters *more);
const struct window *sender_window(const struct sender *sender);
uint64_t sender_rto_ns(const struct sender *sender);

#endif
