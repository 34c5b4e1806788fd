/*
 * link_state.h - the state of a link and its flows; private to this folder. Guarded by the link's lock.
 */
#ifndef SWITCH_WORKER_LINK_STATE_H
#define SWITCH_WORKER_LINK_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/loop.h"
#include "switch/endpoint/succession.h"
#include "switch/worker/switch_link.h"

struct switch_flow {
	struct switch_flow *next; /* of the link's */
	struct switch_link *link;
	uint16_t self, members, words;
	struct trains_peer *peers; /* by member */
	struct shape *shape;
	struct succession stream;
	struct switch_sum *first, *last, *offering; /* under way; the one whose elements are offered now */
	enum esp_status failed; /* ESP_OK: not */
	bool has_ended;         /* it has failed, and its sums have ended */
	bool is_lingering;
	uint64_t linger_ns; /* when the last results are sent again */
	atomic_bool helps;
	_Atomic uint64_t rate_bps;
	uint64_t sums, summed_words, gone;
	uint64_t owner_bytes; /* of one generation's owner */
	uint64_t kept_bytes;  /* of the link's budget */
};

struct switch_link {
	struct loop loop;
	struct loop_fd port;
	struct loop_task kick;
	pthread_t thread;
	bool has_thread;
	struct trains *udp;
	union trains_address own;
	struct trains_peer server;
	uint16_t words;
	bool is_crowded; /* the socket's queue, in this batch */
	uint8_t foreign; /* the version of another protocol that the switch has answered with; 0: none */

	pthread_mutex_t lock;
	pthread_cond_t changed; /* a flow's helps, or its owner's quiet */
	struct switch_flow *flows;
	uint64_t kept_bytes; /* by the owners of all flows */
	struct switch_sum *ended; /* whose done() is to be called */
};

#define SWITCH_FLOW_WINDOW 512u /* numbers in flight, alike on all members */

/* ---- switch_sum.c, with the link's lock held ---- */

void switch_sum_append(struct switch_flow *flow, struct switch_sum *sum);
/* All sums end with the status of the flow. */
void switch_sum_end_all(struct switch_flow *flow);
/* Offers elements while there is room. */
void switch_sum_offer_all(struct switch_flow *flow);
/* The result of a number of the current generation, of another owner or of this one. */
void switch_sum_receive(struct switch_flow *flow, uint32_t sequence, const void *words);
void switch_sum_own_complete(struct switch_flow *flow, uint32_t sequence);

/* ---- switch_leave.c, with the link's lock held ---- */

void switch_leave_pump(struct switch_flow *flow, uint64_t now_ns);

/* ---- switch_flow.c, with the link's lock held ---- */

/* A packet of this generation of the flow has come. */
void switch_flow_packet(struct switch_flow *flow, struct generation *at, struct atp_packet *packet, void *words,
                        uint64_t now_ns);
/* Sends what is to be sent, and returns when it wants to be called again. */
uint64_t switch_flow_pump(struct switch_flow *flow, uint64_t now_ns);
/* The next generation is open. ESP_ELIMIT: the flows of the link would keep more than the budget; ESP_ENOMEM. */
ESP_CHECKED enum esp_status switch_flow_prepare(struct switch_flow *flow, struct error *err);

/* ---- switch_link.c, with the link's lock held ---- */

void switch_link_send(struct switch_flow *flow, const struct endpoint_out *out);
/* Until a flow's state changes; false: that time has come. */
bool switch_link_await(struct switch_link *link, uint64_t until_ns);
/* Its done() is called soon. */
void switch_link_end(struct switch_link *link, struct switch_sum *sum, enum esp_status status);

#endif
