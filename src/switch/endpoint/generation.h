/*
 * generation.h - one member's end of a flow under one flow number: its keys, sender, owner and membership.
 *
 * A stream of elements that outlives the numbers of a flow goes on in the next generation, with another flow number,
 * other keys and numbers from 0 on: succession.h.
 *
 * Pure; one thread at a time.
 */
#ifndef SWITCH_ENDPOINT_GENERATION_H
#define SWITCH_ENDPOINT_GENERATION_H

#include "switch/endpoint/membership.h"
#include "switch/endpoint/owner.h"
#include "switch/endpoint/reach.h"
#include "switch/endpoint/sender.h"

#define GENERATION_SECRET 16u

/* Alike in all generations. Flow numbers and keys in the parts are left 0. */
struct generation_config {
	uint8_t secret[GENERATION_SECRET]; /* that the members have, of this stream alone */
	bool sends, owns;
	uint16_t probed; /* members that are to reach each other before the first generation is used; 0: not asked */
	struct sender_config sender;
	struct owner_config owner;
	struct membership_config membership;
};

struct generation {
	uint32_t number;
	uint64_t flow;
	struct tag_keys keys;
	struct sender *sender; /* NULL: it contributes nothing */
	struct owner *owner;   /* NULL: it owns nothing */
	struct membership membership;
	struct reach reach; /* of the first generation */
	uint64_t timeouts; /* that the membership has heard of */
};

/* The flow number of a generation, which only those that have the secret can know. */
uint64_t generation_flow(const uint8_t secret[GENERATION_SECRET], uint32_t number);
/* Not used again once it is closed. ESP_ENOMEM. */
ESP_CHECKED enum esp_status generation_open(const struct generation_config *config, uint32_t number, uint64_t now_ns,
                                            struct generation **out, struct error *err);
void generation_close(struct generation *generation); /* NULL: nothing */

enum generation_event {
	GENERATION_NOTHING,
	GENERATION_RESULT,    /* of a number in flight: words are its sum */
	GENERATION_COMPLETED, /* the owner has the sum of this number */
};
/* A packet of this flow number. words: any alignment. */
enum generation_event generation_packet(struct generation *generation, const struct atp_packet *packet,
                                        const void *words, uint64_t now_ns);

/* Does a switch help? Sender and owner follow; members agree by themselves that they reach each other straight. */
bool generation_helps(const struct generation *generation);
/* The next hello, or packet of data, to send now; false: none. */
bool generation_greet(struct generation *generation, uint64_t now_ns, struct endpoint_out *out);
bool generation_next(struct generation *generation, uint64_t now_ns, struct endpoint_out *out);
uint64_t generation_wake_ns(const struct generation *generation);

#endif
