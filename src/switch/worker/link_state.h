/*
 * link_state.h - the state of a link and its flows; private to this folder. Guarded by the link's lock.
 */
#ifndef SWITCH_WORKER_LINK_STATE_H
#define SWITCH_WORKER_LINK_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/loop.h"
#include "switch/endpoint/membership.h"
#include "switch/endpoint/owner.h"
#include "switch/endpoint/sender.h"
#include "switch/worker/switch_link.h"

struct switch_flow {
	struct switch_flow *next; /* of the link's */
	struct switch_link *link;
	uint64_t id;
	uint16_t self, members, words;
	struct trains_peer *peers; /* by member */
	struct shape *shape;
	struct tag_keys keys;
	struct sender *sender; /* NULL, as the owner: it has failed */
	struct owner *owner;
	struct membership membership;
	struct switch_sum *first, *last, *offering; /* under way; the one whose elements are offered now */
	uint32_t numbered;      /* numbers below belong to sums, under way or over */
	enum esp_status failed; /* ESP_OK: not */
	bool is_lingering;
	uint64_t linger_ns; /* when the last results are sent again */
	atomic_bool helps;
	_Atomic uint64_t rate_bps;
	uint64_t sums, summed_words, gone;
	uint64_t kept_bytes; /* of the link's budget */
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

	pthread_mutex_t lock;
	pthread_cond_t changed; /* a flow's helps, or its owner's quiet */
	struct switch_flow *flows;
	uint64_t kept_bytes; /* by the owners of all flows */
	struct switch_sum *ended; /* whose done() is to be called */
};

/* ---- switch_flow.c, with the link's lock held ---- */

/* A packet of this flow has come. */
void switch_flow_packet(struct switch_flow *flow, struct atp_packet *packet, void *words, uint64_t now_ns);
/* Sends what is to be sent, and returns when it wants to be called again. */
uint64_t switch_flow_pump(struct switch_flow *flow, uint64_t now_ns);

/* ---- switch_link.c, with the link's lock held ---- */

void switch_link_send(struct switch_flow *flow, const struct endpoint_out *out);
/* Its done() is called soon. */
void switch_link_end(struct switch_link *link, struct switch_sum *sum, enum esp_status status);

#endif
