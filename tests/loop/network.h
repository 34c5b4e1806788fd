/*
 * network.h - what a loop is made of: endpoints, and the links between them. Private to loop.
 */
#ifndef TESTS_LOOP_NETWORK_H
#define TESTS_LOOP_NETWORK_H

#include "base/rng.h"
#include "loop/events.h"
#include "loop/loop.h"
#include "transport/stream.h"

/* What was offered on a channel was taken back: a flag that those who read it look at. Kept until the end. */
struct revocation {
	struct revocation *next;
	uint16_t channel;
	bool over; /* the channel was forgotten: if it is opened again, it has another */
	_Atomic uint32_t flag;
};

/* A lane of a node. */
struct loop_end {
	struct loop *loop;
	uint32_t node, lane;
	const struct transport_user *user;
	void *context;
	bool dead;    /* the node is gone                                              */
	bool severed; /* its user has failed: nothing of its memory is read any more   */
	bool *lost;   /* by node: its connection has broken, and the user knows; NULL: none has */
	struct revocation *revocations;
	struct link *shared; /* links into here with offers under way */
};

/* A message that the receiver may still be reading. */
struct offer {
	struct offer *next;
	struct transport_message message;
	bool forgotten; /* the sender is not told when it was consumed */
};

/* One direction between two lanes. */
struct link {
	struct loop *loop;
	struct loop_end *from, *to;
	enum loop_carry carry;
	struct stream_writer writer;
	struct stream_reader reader;
	uint64_t last_arrival;
	uint32_t in_flight;
	bool broken;
	struct offer *offers;
	bool in_shared;
	struct link *next_shared;
	struct link *next; /* in the loop's table */
};

struct loop {
	struct loop_config config;
	struct rng rng;
	uint64_t now, event_count;
	struct events events;
	struct loop_end *endpoints; /* by node, then lane */
	struct link **table;
	uint32_t table_size, link_count;
};

/* loop.c */
_Noreturn void loop_no_memory(void);

/* A test transport: running out of memory ends the run, loudly. */
static inline void loop_must(bool had_memory)
{
	if (!had_memory)
		loop_no_memory();
}

void loop_schedule(struct loop *loop, uint64_t time, void (*act)(void *, void *), void *subject, void *detail);
uint64_t loop_delay(struct loop *loop);
struct loop_end *loop_endpoint(struct loop *loop, uint32_t node, uint32_t lane);

/* The connection to peer has broken: the user is told, and after a while the peer. */
void endpoint_lose(struct loop_end *endpoint, uint32_t peer, enum esp_status why);
/* Sends whatever the endpoint has become ready to send, and settles what it has consumed. */
void endpoint_drain(struct loop_end *endpoint);
const _Atomic uint32_t *endpoint_revocation(struct loop_end *endpoint, uint16_t channel);

/* link.c */
struct link *link_get(struct loop *loop, struct loop_end *from, struct loop_end *to);
void link_close(struct link *link);
/* Sends what there is to send, as far as the link has room. */
void link_pump(struct link *link);
/* Which of the offers under way have been consumed? Their senders get to know after a while. */
void link_settle(struct link *link);
/* The endpoint, one of the two ends, forgets a channel. */
void link_forget(struct link *link, const struct loop_end *endpoint, uint16_t channel);
/* The same for what is under way: event may be any. */
void link_event_forget(const struct event *event, const struct loop_end *endpoint, uint16_t channel);
/* Frees what belongs to the event. */
void link_event_drop(const struct event *event);

#endif
