/*
 * control.h - the control thread of a node: it makes, accepts and proves connections, and drives control connections.
 *
 * Every connection of a node, but for those of joining, is made or accepted here and proved by a handshake. Data
 * connections are then handed on to the lanes; control connections stay. Ranks of one host reach each other through
 * Unix sockets, over which they also get the descriptors of each other's shared memory (fd_exchange.h); others through
 * TCP. When a control connection closes, the peer is dialled once more; if no process answers, the peer has died.
 *
 * A stranger's connection costs one struct, at most GUESTS_MOST at a time and for a few seconds; a flood of them is not
 * accepted (accept_limit.h).
 *
 * The control thread calls the events, without a lock held. Functions may be called from any thread, within events too,
 * unless their comment names the control thread.
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
 * Events, in one table per owner; the control thread calls them with the owner's context and without a lock held. A
 * table that is NULL has no owner: connections of that purpose are refused, or the node does without.
 */

/* Data connections. */
struct control_lane_events {
	/* Takes the descriptor. rail: that it uses, or ROUTE_ANY; again: it replaces the present connection, if any. */
	void (*connected)(void *context, uint32_t peer, uint32_t lane, int fd, uint32_t rail, bool again);
	/* control_dial_lane() has failed; again: so has control_dial_again(), or either where connections are replaced. */
	void (*unreachable)(void *context, uint32_t peer, uint32_t lane, bool again, const struct error *why);
};

/* Rails, if there are several, and connections to measure them with. */
struct control_rail_events {
	/* Returns the rail of this attempt. */
	uint32_t (*choose)(void *context, uint32_t peer, uint32_t lane, uint32_t attempt);
	/* A connection was not made in time on this rail. */
	void (*late)(void *context, uint32_t peer, uint32_t rail);
	/* Takes the descriptor. dialled: by control_dial_probe(), which may instead report probe_unreachable(). */
	void (*probe_connected)(void *context, uint32_t peer, uint32_t rail, int fd, bool dialled);
	void (*probe_unreachable)(void *context, uint32_t peer, uint32_t rail, const struct error *why);
	/* control_config.netlink_fd is readable. */
	void (*netlink)(void *context);
};

/* Descriptors of the nodes of this host. */
struct control_fd_events {
	/* The descriptors of a node of this host; takes them. */
	void (*neighbour)(void *context, uint32_t peer, const int *fds, uint32_t count);
	/* At the first node of a host: the peer has sent its descriptors. */
	void (*left)(void *context, uint32_t peer);
};

/* Control connections: which peers are there. */
struct control_peer_events {
	/* A control connection is open; dialled: by this node. */
	void (*opened)(void *context, uint32_t peer, bool dialled);
	/* The first control connection that this node has dialled is open, or cannot be made. */
	void (*connected)(void *context, uint32_t peer);
	void (*unreachable)(void *context, uint32_t peer, const struct error *why);
	/*
	 * A dialled peer has not answered so far; perhaps its accept limit is locked by unproved connections
	 * (accept_limit.h). way: the address, as route_text(); by_kernel: its host answers, and the process does not.
	 */
	void (*unanswered)(void *context, uint32_t peer, const char *way, bool by_kernel);
	/* The other end has closed a control connection, or it broke, and the peer does not answer elsewhere either. */
	void (*closed)(void *context, uint32_t peer, const struct error *why);
	/* Returns true if the peer is to be dialled again before closed(), because its fate matters. */
	bool (*doubts)(void *context, uint32_t peer);
	/* Returns true if this node sends messages for all ranks directly to this peer. */
	bool (*forwards_to)(void *context, uint32_t peer);
};

/* Joiners. */
struct control_joiner_events {
	/*
	 * `count` joiners that the communicator of this channel has admitted, or was to, went away before they had joined;
	 * why: a sentence about them.
	 */
	void (*lost)(void *context, uint32_t channel, uint32_t count, const char *why);
	/* Writes why a joiner is refused whose arrival (RENDEZVOUS_ARRIVAL_BYTES) names another job or other settings. */
	void (*explain)(void *context, const uint8_t *arrival, struct error *why);
};

/* The turns of the control thread. */
struct control_turn_events {
	/* Every few dozen milliseconds while control_tick() asks for it. */
	void (*tick)(void *context, uint64_t now_ns);
	/* After all events of a turn. Returns the time of the next call at the latest; UINT64_MAX: none. */
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

/* A message of a type that the function is subscribed to. */
typedef void control_message_fn(void *context, uint32_t peer, const struct control_msg *msg);

/* The function for the messages of each type; messages without one are dropped, as those of a later version. */
struct control_subscribers {
	control_message_fn *of[CONTROL_TYPES];
};

/* Before control_open(), once per type. */
static inline void control_subscribe(struct control_subscribers *subscribers, enum control_type type,
                                     control_message_fn *on_message)
{
	assert(type > 0 && type < CONTROL_TYPES && !subscribers->of[type]);
	subscribers->of[type] = on_message;
}

struct control_config {
	/* This node: its hello and the job's key. A listener with many jobs has `find` instead of a key. */
	struct handshake_config self;
	const struct log *log;          /* borrowed; may be NULL */
	uint64_t join_until_ns;         /* peers may still come to join until then; 0: no longer */
	const struct roster *roster;    /* borrowed */
	const struct rails *rails;      /* a lane is dialled on the rail of its number, modulo their count; borrowed */
	const bool *is_local;           /* by rank: it is on this host and reached through memory; borrowed */
	const uint32_t *local_of, *rank_of; /* by rank: its number among local ranks; by number: its rank; borrowed */
	uint32_t local_self, local_count;
	uint32_t lanes;
	bool replaces;                  /* connections of lanes may be replaced: each is dialled once */
	const struct listener *listener; /* TCP; its sockets are taken, the rest is borrowed */
	int local_fd;                   /* Unix; taken. -1: none */
	int join_fd;                    /* TCP: the join address, if that is not where the node listens; taken. -1: it is */
	int join_free_fd;               /* readable once no other control accepts at join_fd; taken. -1: none does */
	int netlink_fd;                 /* watched for the owner's netlink(); borrowed. -1: none */
	const int *descriptors;         /* for the other ranks of this host; borrowed */
	uint32_t descriptor_count;      /* at most FD_EXCHANGE_EACH_MOST */
	uint64_t patience_ns;           /* for how long the node tries to reach a peer */
	uint64_t late_ns;               /* until all have joined it tries at least this long after join_until_ns */
	uint64_t interval_ns;           /* the liveness interval */
	uint32_t segment_bytes;         /* of TCP; 0: the kernel's choice */
	struct loop *loop;              /* borrowed; its thread is the control thread. NULL: a new loop with a thread */
	const struct control_events *events;             /* borrowed */
	const struct control_subscribers *subscribers;   /* borrowed; NULL: messages are dropped */
	void *context;
};

/* Takes the sockets, also if it fails. *out is set before the first event; NULL if it fails. ESP_ENOMEM, ESP_ELIMIT. */
ESP_CHECKED enum esp_status control_open(const struct control_config *config, struct control **out, struct error *err);
/*
 * Sends the queued messages, for a tenth of the liveness interval at most, and closes all connections. No event comes
 * any more. Accepts NULL.
 */
void control_close(struct control *control);
/* The loop of the control thread. */
struct loop *control_loop(const struct control *control);

/*
 * Dials a data connection. Where connections are replaced, only the first call for a lane has an effect: the lower of
 * two ranks replaces it later with control_dial_again().
 */
void control_dial_lane(struct control *control, uint32_t peer, uint32_t lane);
/* Replaces a data connection, trying all rails for patience_ns. */
void control_dial_again(struct control *control, uint32_t peer, uint32_t lane, uint64_t patience_ns);
/* A connection on this rail only, tried for patience_ns. */
void control_dial_probe(struct control *control, uint32_t peer, uint32_t rail, uint64_t patience_ns);
void control_dial_control(struct control *control, uint32_t peer);
/* Dials a control connection, or dials it again at once, unless one is open or an attempt is under way. */
void control_look_for(struct control *control, uint32_t peer);
/* Exchanges descriptors with all ranks of this host, through the first one; not called by the first one itself. */
void control_dial_fds(struct control *control);

/*
 * Sends a message to one rank, over a new connection if there is none; or to all ranks for which forwards_to() is true
 * and that have a connection.
 */
void control_send(struct control *control, uint32_t peer, const struct control_msg *msg);
void control_send_all(struct control *control, const struct control_msg *msg);

/*
 * Ends all connections to a peer and forgets all messages of both directions, so that the peer can come anew: the same
 * node, or one that has taken its place. The peer does the same once its connection is closed.
 */
void control_forget(struct control *control, uint32_t peer);

/* The control thread soon calls the function with the context of the events. False: no memory. */
bool control_run(struct control *control, control_fn *function, void *argument);
/* The number of joiners that are proved and not admitted. Any thread. */
uint32_t control_joiners(const struct control *control);
/* Of these: the joiners that have answered since they were last asked, or have only just come. Any thread. */
uint32_t control_sure_joiners(const struct control *control);
/* Control thread only: asks all joiners whether they are there, except the promised ones. */
void control_ask_joiners(struct control *control);
/*
 * Control thread only: reserves joiners that have answered for a communicator (`channel`), in the order of their
 * arrival, at most `most` of them (0: all); no other communicator gets them meanwhile. Returns their number.
 */
uint32_t control_promise(struct control *control, uint32_t channel, uint32_t most);
/* Control thread only: ends the reservation of joiners that the communicator has not admitted. */
void control_release(struct control *control, uint32_t channel);
/*
 * A duplicate of the socket of the join address; -1: no descriptor left. Any thread. *out_free_fd becomes readable when
 * this control is closed: until then connections that arrive there are for this control, and another could only refuse
 * them.
 */
int control_share_join_port(struct control *control, int *out_free_fd);
/*
 * Control thread only: admits `count` joiners that are promised to the communicator (first->channel), in the order of
 * their arrival. Each gets the message, with `about` (its rank) one higher than the one before. Returns the number of
 * admitted joiners; lost() reports the missing ones.
 */
uint32_t control_invite(struct control *control, const struct control_msg *first, uint32_t count);
/*
 * Control thread only: joiners that the communicator (why->channel) has admitted, and that have not joined, get the
 * message and are expected to go. They do not count as lost.
 */
void control_uninvite(struct control *control, const struct control_msg *why);
/* Control thread only: true if a control connection to this rank is open or being made. */
bool control_has_control(const struct control *control, uint32_t peer);

/* Control thread only: a rank is about to connect, so for some seconds all connections are accepted, strangers' too. */
void control_expect(struct control *control);
/* Control thread only: all have joined; ends that state, which lasts from the opening on. */
void control_settle(struct control *control);

/*
 * Control thread only: replaces the control connection to a peer if it uses this rail (ROUTE_ANY: any) and no newer one
 * is being made. Messages that were not acknowledged are sent again on the new connection.
 */
void control_leave_rail(struct control *control, uint32_t peer, uint32_t rail);
/* Control thread only: calls found() for each control connection on which no sent byte was acknowledged for for_ns. */
void control_find_stuck(struct control *control, uint64_t now, uint64_t for_ns,
                        void (*found)(void *context, uint32_t peer, uint32_t rail));

/* Control thread only: when bytes last arrived from this rank on control connections, read or not; 0: none is open. */
uint64_t control_last_sign(const struct control *control, uint32_t peer, uint64_t now);

/* Whether tick() is wanted from now on. */
void control_tick(struct control *control, bool wanted);

#endif
