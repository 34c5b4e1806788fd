/*
 * network.h - what a loop is made of: endpoints, and the links between them. Private to loop.
 */
#ifndef TESTS_LOOP_NETWORK_H
#define TESTS_LOOP_NETWORK_H

#include "base/rng.h"
#include "inproc/events.h"
#include "inproc/inproc.h"
#include "transport/stream.h"

/* What was offered on a channel was taken back: a flag that those who read it look at. Kept until the end. */
struct revocation {
	struct revocation *next;
	uint16_t channel;
	bool over; /* the channel was forgotten: if it is opened again, it has another */
	_Atomic uint32_t flag;
};

/* A lane of a node. */
struct inproc_end {
	struct inproc *loop;
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
	struct inproc *loop;
	struct inproc_end *from, *to;
	enum inproc_carry carry;
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

struct inproc {
	struct inproc_config config;
	struct rng rng;
	uint64_t now, event_count;
	struct events events;
	struct inproc_end *endpoints; /* by node, then lane */
	struct link **table;
	uint32_t table_size, link_count;
};

/* inproc.c */
_Noreturn void inproc_no_memory(void);

/* A test transport: running out of memory ends the run, loudly. */
static inline void inproc_must(bool had_memory)
{
	if (!had_memory)
		inproc_no_memory();
}

void inproc_schedule(struct inproc *loop, uint64_t time, void (*act)(void *, void *), void *subject, void *detail);
uint64_t inproc_delay(struct inproc *loop);
struct inproc_end *inproc_endpoint(struct inproc *loop, uint32_t node, uint32_t lane);

/* The connection to peer has broken: the user is told, and after a while the peer. */
void endpoint_lose(struct inproc_end *endpoint, uint32_t peer, enum esp_status why);
/* Sends whatever the endpoint has become ready to send, and settles what it has consumed. */
void endpoint_drain(struct inproc_end *endpoint);
const _Atomic uint32_t *endpoint_revocation(struct inproc_end *endpoint, uint16_t channel);

/* link.c */
struct link *link_get(struct inproc *loop, struct inproc_end *from, struct inproc_end *to);
void link_close(struct link *link);
/* Sends what there is to send, as far as the link has room. */
void link_pump(struct link *link);
/* Which of the offers under way have been consumed? Their senders get to know after a while. */
void link_settle(struct link *link);
/* The endpoint, one of the two ends, forgets a channel. */
void link_forget(struct link *link, const struct inproc_end *endpoint, uint16_t channel);
/* The same for what is under way: event may be any. */
void link_event_forget(const struct event *event, const struct inproc_end *endpoint, uint16_t channel);
/* Frees what belongs to the event. */
void link_event_drop(const struct event *event);

#endif
