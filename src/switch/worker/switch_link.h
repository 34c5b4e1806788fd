/*
 * switch_link.h - a worker's side of a switch: a socket, a thread, and flows whose members sum integers through it.
 *
 * One link per process, one flow per communicator. A flow sums vectors of 32-bit integers, one after the other, in the
 * same order on all members: it cuts them into elements, numbers these, and has a sender, an owner and a membership
 * (switch/endpoint) do the rest. The thread "esp-switch" owns the socket; it answers members that lost a result at any
 * time, also while no sum is under way. A switch that is silent is passed by: packets go straight to owners.
 *
 * Any thread may call these functions; done functions are called by the link's thread without a lock.
 */
#ifndef SWITCH_WORKER_SWITCH_LINK_H
#define SWITCH_WORKER_SWITCH_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "switch/trains/trains.h"
#include "wire/atp_packet.h"

struct switch_link;
struct switch_flow;

/* server: the switch's address. ESP_ELINK: there is no way to it; ESP_ELIMIT, ESP_ENOMEM. */
ESP_CHECKED enum esp_status switch_link_open(const union trains_address *server, struct switch_link **out,
                                             struct error *err);
/*
 * Its thread ends: no packet moves and no done() is called any more. Sums of failed flows end here. NULL: nothing.
 */
void switch_link_stop(struct switch_link *link);
/* All flows are closed. NULL: nothing. */
void switch_link_close(struct switch_link *link);
/* Where other members reach this one. */
const union trains_address *switch_link_address(const struct switch_link *link);
/* Words of a packet that fits the way to the switch. */
uint16_t switch_link_words(const struct switch_link *link);

/* ---- flows ---- */

#define SWITCH_FLOW_SECRET 16u
#define SWITCH_FLOW_BUDGET (64u << 20) /* bytes of sums that the owners of all flows of a link keep */

struct switch_flow_config {
	uint8_t secret[SWITCH_FLOW_SECRET]; /* that the members have, of this flow alone: its numbers and keys */
	uint16_t self, members;             /* 2 to ATP_CHILDREN_MAX members */
	const union trains_address *addresses; /* of the members */
	uint16_t words;                     /* of an element: alike on all members */
	uint32_t limit; /* numbers after which the flow goes on under another flow number; 0: the most. Alike on all */
};

/* ESP_ELIMIT: the flows of the link would keep more than the budget; ESP_ENOMEM. */
ESP_CHECKED enum esp_status switch_flow_open(struct switch_link *link, const struct switch_flow_config *config,
                                             struct switch_flow **out, struct error *err);
/* No sum is under way. NULL: nothing. */
void switch_flow_close(struct switch_flow *flow);

/* Is the switch there, has it room for elements of this length, and do all members answer this one straight? */
bool switch_flow_helps(const struct switch_flow *flow);
/* The same, waiting until then at most. */
bool switch_flow_await(struct switch_flow *flow, uint64_t until_ns);
/* Why it does not help: a sentence without its end, for people. */
#define SWITCH_FLOW_WHY 160u
const char *switch_flow_why(struct switch_flow *flow, char out[SWITCH_FLOW_WHY]);
/* Is a sum under way? */
bool switch_flow_is_busy(struct switch_flow *flow);
/* Of the switch's link, as it has said; 0: not known. */
uint64_t switch_flow_rate_bps(const struct switch_flow *flow);
/*
 * Are there numbers for so many words in so many pieces? Numbers of a flow are not used again: when they come to an end
 * the next generation is opened here (switch/endpoint/succession.h). False for a while where that is not possible.
 */
bool switch_flow_has_numbers(struct switch_flow *flow, uint64_t words, uint32_t pieces);

struct switch_piece {
	const void *in;
	void *out; /* may be in */
	uint64_t words;
	uint32_t first; /* the flow's: number of its first element within the sum */
};

/* A sum under way; the caller's storage until done() is called. */
struct switch_sum {
	struct switch_piece *pieces; /* borrowed */
	uint32_t piece_count;
	enum atp_kind kind;
	uint32_t call; /* digest: alike on all members */
	void (*done)(struct switch_sum *sum, enum esp_status status);

	/* The flow's. */
	struct switch_sum *next;
	uint32_t generation, first;
	uint32_t offered, missing; /* elements */
	uint32_t elements;
	enum esp_status status;
};

/* The next sum of the flow. False: the flow has failed, and nothing has happened. */
bool switch_flow_start(struct switch_flow *flow, struct switch_sum *sum);
/* All sums under way end with this status, and later ones are refused. */
void switch_flow_fail(struct switch_flow *flow, enum esp_status status);
/*
 * After the last sum: serves members that lack results until all but those that are gone have said that they have
 * them, or until that time. False: time was over first.
 */
typedef bool switch_is_gone_fn(void *context, uint16_t member);
bool switch_flow_linger(struct switch_flow *flow, uint64_t until_ns, switch_is_gone_fn *is_gone, void *context);

struct switch_flow_stats {
	uint64_t sums, words; /* that have ended well */
	uint64_t originals, direct; /* packets: through the switch, straight */
	uint64_t resends, bypasses; /* sent again: through the switch, straight */
	uint64_t refused;     /* results and contributions with a wrong tag */
	uint64_t added_here;  /* contributions that this owner added, past the switch */
	uint64_t completed;   /* elements that this owner completed */
	uint64_t gone;        /* times that the switch fell silent */
	uint64_t generations; /* flow numbers that the flow has had */
};
void switch_flow_stats(struct switch_flow *flow, struct switch_flow_stats *out);

#endif
