/*
 * control.h - the one thread of a rank that is always there: it opens doors and carries word.
 *
 * Every connection of a rank, but for those of joining, is made or accepted here, proved by a
 * handshake, and then handed to whom it is for: data connections to the lanes, control
 * connections stay. Ranks of one host reach each other through Unix sockets, over which they
 * also get the descriptors of each other's shared memory (fd_exchange.h); others through TCP. A control
 * connection that closes is how the death of a process is noticed: the rank is dialled once more, and is not there.
 *
 * Strangers cost one small struct each, at most GUESTS_MOST at a time and for a few seconds; and if there are many, they are not
 * let in (accept_limit.h).
 *
 * Events are called by the control's thread, without a lock held; functions may be called
 * from any thread, from within events too.
 */
#ifndef NODE_CONTROL_CONTROL_H
#define NODE_CONTROL_CONTROL_H

#include <assert.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/loop.h"
#include "node/auth/handshake.h"
#include "node/control/cmdq.h"
#include "node/control/fd_exchange.h"
#include "node/control/local_socket.h"
#include "node/net/listen.h"
#include "node/net/route.h"
#include "wire/control_msg.h"

struct control;

/*
 * Events, in one table per owner; all are called by the control thread, with the owner's context and without a lock held. A table
 * that is NULL has no owner: connections of that purpose are refused, or the node does without.
 */

/* Data connections. */
struct control_lane_events {
	/* Takes the descriptor. rail: that it goes on, or ROUTE_ANY; again: it replaces the one that there is, if any. */
	void (*connected)(void *context, uint32_t peer, uint32_t lane, int fd, uint32_t rail, bool again);
	/* control_dial_lane() was in vain, or, again: where connections are replaced, that or control_dial_again(). */
	void (*unreachable)(void *context, uint32_t peer, uint32_t lane, bool again, const struct error *why);
};

/* Rails, if there are several, and connections to measure them with. */
struct control_rail_events {
	/* The rail that a connection takes. */
	uint32_t (*choose)(void *context, uint32_t peer, uint32_t lane, uint32_t attempt);
	/* A connection was not made on that rail in time. */
	void (*late)(void *context, uint32_t peer, uint32_t rail);
	/* Takes the descriptor. dialled: by control_dial_probe(), which may also be in vain. */
	void (*probe_connected)(void *context, uint32_t peer, uint32_t rail, int fd, bool dialled);
	void (*probe_unreachable)(void *context, uint32_t peer, uint32_t rail, const struct error *why);
	/* control_config.netlink_fd is readable. */
	void (*netlink)(void *context);
};

/* Descriptors of the nodes of this host. */
struct control_fd_events {
	/* A node of this host, and its descriptors; takes them. */
	void (*neighbour)(void *context, uint32_t peer, const int *fds, uint32_t count);
	/* The first node of a host: this one has left its descriptors. */
	void (*left)(void *context, uint32_t peer);
};

/* Control connections: which peers are there. */
struct control_peer_events {
	/* A control connection stands; dialled: by this node. */
	void (*opened)(void *context, uint32_t peer, bool dialled);
	/* The first control connection that this node dialled stands, or one cannot be made. */
	void (*connected)(void *context, uint32_t peer);
	void (*unreachable)(void *context, uint32_t peer, const struct error *why);
	/*
	 * A peer that is dialled does not answer so far: perhaps it admits no connection, as too many unproved ones come
	 * (accept_limit.h). way: where, as route_text(); by_kernel: its host answers, and the process does not.
	 */
	void (*unanswered)(void *context, uint32_t peer, const char *way, bool by_kernel);
	/* A control connection was closed by the other end, or broke, and the peer does not answer elsewhere either. */
	void (*closed)(void *context, uint32_t peer, const struct error *why);
	/* Is anything to be done before that to find out whether the peer is there: is that of interest? */
	bool (*doubts)(void *context, uint32_t peer);
	/* Does a message for all go to this peer directly? */
	bool (*forwards_to)(void *context, uint32_t peer);
};

/* Joiners. */
struct control_joiner_events {
	/* So many that the communicator of this channel has admitted, or was to, went away before they had joined: why says which, and how. */
	void (*lost)(void *context, uint32_t channel, uint32_t count, const char *why);
	/* The arrival (RENDEZVOUS_ARRIVAL_BYTES) of one whose job or settings are others: why it is refused. */
	void (*explain)(void *context, const uint8_t *arrival, struct error *why);
};

/* The turns of the control thread. */
struct control_turn_events {
	/* control_config.extra_fd is readable. */
	void (*extra)(void *context);
	/* Every few dozen milliseconds while control_tick() asks for it. */
	void (*tick)(void *context, uint64_t now_ns);
	/* After everything that has happened. Returns when it wants to be called at the latest; UINT64_MAX: at no time. */
	uint64_t (*turn)(void *context, uint64_t now_ns);
};

struct control_events {
	const struct control_lane_events *lanes;
	const struct control_rail_events *rails;
	const struct control_fd_events *fds;
	const struct control_peer_events *peers;     /* never NULL */
	const struct control_joiner_events *joiners;
	const struct control_turn_events *turns;
};

/* A message of a type that it has subscribed to. */
typedef void control_message_fn(void *context, uint32_t peer, const struct control_msg *msg);

/* Who takes the messages of each type; a type without a subscriber is dropped, as one of a later version. */
struct control_subscribers {
	control_message_fn *of[CONTROL_TYPES];
};

/* Before control_open(), once per type. */
static inline void control_subscribe(struct control_subscribers *subscribers, enum control_type type, control_message_fn *on_message)
{
	assert(type > 0 && type < CONTROL_TYPES && !subscribers->of[type]);
	subscribers->of[type] = on_message;
}

struct control_config {
	/* This node: its hello and the job's key. A listener with many jobs has `find` instead of a key. */
	struct handshake_config self;
	const struct log *log;          /* borrowed; may be NULL */
	uint64_t join_until_ns;         /* other nodes may come to join until then; 0: no longer */
	const struct roster *roster;    /* borrowed */
	const struct rails *rails;      /* a lane is dialled on the rail of its number, taken around; borrowed */
	const bool *is_local;           /* by rank: is on this host, and is to be reached through memory; borrowed */
	const uint32_t *local_of, *rank_of; /* such ranks are numbered: by rank, by number; borrowed */
	uint32_t local_self, local_count;
	uint32_t lanes;
	bool replaces;                  /* connections of lanes may be replaced: each is dialled once */
	const struct listener *listener; /* TCP; its sockets are taken, the rest is borrowed */
	int local_fd;                   /* Unix; taken. -1: none */
	int join_fd;                    /* TCP: where newcomers know this rank, if that is not where it listens; taken. -1: it is */
	int join_free_fd;               /* readable once nobody else listens there; taken. -1: it is free         */
	int extra_fd;                   /* looked after for somebody else; borrowed. -1: none */
	int netlink_fd;                    /* the same, for word of interfaces. -1: none */
	const int *descriptors;         /* what ranks of this host are given; borrowed */
	uint32_t descriptor_count;      /* at most FD_EXCHANGE_EACH_MOST */
	uint64_t patience_ns;           /* how long a rank is tried to be reached */
	uint64_t late_ns;               /* while opening it is tried at least so much longer than there is time to join */
	uint64_t interval_ns;           /* how long a living rank is silent at the most */
	uint32_t segment_bytes;         /* of TCP; 0: the kernel's choice */
	struct loop *loop;              /* borrowed: the node's, whose thread is the control thread then; NULL: one of its own, with a thread */
	const struct control_events *events;             /* borrowed */
	const struct control_subscribers *subscribers;   /* borrowed; NULL: messages are dropped */
	void *context;
};

/* Takes the sockets, also if it fails. *out is written before the first event comes; NULL if it fails. */
ESP_CHECKED enum esp_status control_open(const struct control_config *config, struct control **out, struct error *err);
/* Sends what is queued, for a tenth of the interval at most, and closes all connections. No event comes any more. NULL is fine. */
void control_close(struct control *control);

/* Where connections are replaced, nothing if it has been done before: that is done one by one, by the lower of two ranks. */
void control_dial_lane(struct control *control, uint32_t peer, uint32_t lane);
/* A connection in place of the one that there is, trying all rails for so long. */
void control_dial_again(struct control *control, uint32_t peer, uint32_t lane, uint64_t patience_ns);
/* On one rail and no other, for so long. */
void control_dial_probe(struct control *control, uint32_t peer, uint32_t rail, uint64_t patience_ns);
void control_dial_control(struct control *control, uint32_t peer);
/* Is it there? A control connection is dialled, or again at once, unless one stands or comes about. */
void control_look_for(struct control *control, uint32_t peer);
/* Gets the descriptors of all ranks of this host, and gives them ours, over the shelf of the first; not for that itself. */
void control_dial_fds(struct control *control);

/*
 * To one rank (a connection is made if there is none), or to all ranks that word is passed on by (passes_on), if there is a
 * connection.
 */
void control_send(struct control *control, uint32_t peer, const struct control_msg *msg);
void control_send_all(struct control *control, const struct control_msg *msg);

/*
 * Ends all connections to a peer and forgets what was said to it and heard of it, so that it can come anew: the same node, or one
 * that has taken its place. The peer does the same once its connection is closed.
 */
void control_forget(struct control *control, uint32_t peer);

/* Runs the function with the context of the events, soon. False: no memory. */
bool control_run(struct control *control, control_fn *function, void *argument);
/* Newcomers who wait at the door of this rank: proved, and not invited. Any thread. */
uint32_t control_joiners(const struct control *control);
/* Of them, those who have answered since they were last asked, or have only just come. Any thread. */
uint32_t control_sure_joiners(const struct control *control);
/* By the control's thread alone: asks all of them whether they are there, but for those who are promised. */
void control_ask_joiners(struct control *control);
/*
 * By the control's thread alone: a group (`channel`) counts on those who have answered, who came first first, `most` of them at the most
 * (0: all); no other group does meanwhile. How many.
 */
uint32_t control_promise(struct control *control, uint32_t channel, uint32_t most);
/* By the control's thread alone: it does not any more, but for those whom it has let in. */
void control_release(struct control *control, uint32_t channel);
/*
 * Another descriptor of the socket where newcomers know this rank; -1: none left. Any thread. *out_free_fd becomes readable
 * when this control is closed: until then what comes there is for it, and who else took it could only refuse it.
 */
int control_share_door(struct control *control, int *out_free_fd);
/*
 * By the control's thread alone: so many of those who are promised to the group (`channel`) are let in, who came first first; each gets the
 * message, with `about` one more each time. How many.
 */
uint32_t control_invite(struct control *control, const struct control_msg *first, uint32_t count);
/*
 * By the control's thread alone: those whom the group (`channel`) has let in, and who have not joined, get the message, and are expected to go.
 * They do not count as lost.
 */
void control_uninvite(struct control *control, const struct control_msg *why);
/* By the control's thread alone: is there a control connection to this rank, or one that is being made? */
bool control_has_control(const struct control *control, uint32_t peer);

/* By the control's thread alone: a rank is about to connect, so for some seconds all are let in who come, strangers too. */
void control_expect(struct control *control);
/* The same: no longer, as it is from the beginning on. */
void control_settle(struct control *control);

/*
 * By the control's thread alone: another control connection in place of the one that there is, if that goes on this rail (ROUTE_ANY:
 * wherever it goes) and none is being made. What was said on it and not heard is said again.
 */
void control_leave_rail(struct control *control, uint32_t peer, uint32_t rail);
/* By the control's thread alone: tells of each control connection of whose sending nothing has arrived for so long. */
void control_find_stuck(struct control *control, uint64_t now, uint64_t for_ns, void (*found)(void *context, uint32_t peer, uint32_t rail));

/* By the control's thread alone: when anything came last on control connections to this rank, read or not; 0: there is none. */
uint64_t control_last_sign(const struct control *control, uint32_t peer, uint64_t now);

/* From now on tick() is wanted, or not. */
void control_tick(struct control *control, bool wanted);

#endif
