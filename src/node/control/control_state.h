/*
 * control_state.h - what the control is made of. Private to control.c, connect.c, data_connection.c, peer_connection.c, recheck.c, accept.c, fd_handover.c and
 * joiner_queue.c, for its thread.
 *
 * control.c has the connections, what others ask for, and the thread; connect.c the connections that this rank makes; data_connection.c those for data;
 * peer_connection.c which control connection is spoken on; recheck.c whether a rank is there whose connection has ended; accept.c who is let in
 * where the rank listens; fd_handover.c the descriptors of the ranks of this host; joiner_queue.c who waits at the door.
 */
#ifndef NODE_CONTROL_CONTROL_STATE_H
#define NODE_CONTROL_CONTROL_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "node/control/accept_limit.h"
#include "node/control/cmdq.h"
#include "node/control/connection.h"
#include "node/control/control.h"
#include "node/control/reliable.h"

enum control_own_kind {
	CONTROL_OWN_PORT,    /* a listening socket                      */
	CONTROL_OWN_FREE,    /* config.join_free_fd                     */
	CONTROL_OWN_EXTRA,
	CONTROL_OWN_NETLINK,
};

struct control_own {
	struct loop_fd watched;
	struct control *control;
	enum control_own_kind kind;
};
#define CONTROL_OWN_MOST (LISTEN_MOST + 5u)

/* Where the node listens, and connections that it has accepted there. */
struct control_accept {
	int listen_fds[LISTEN_MOST];
	uint32_t listen_count;
	struct control_own own[CONTROL_OWN_MOST]; /* descriptors that are watched beside connections   */
	uint32_t own_count;
	struct control_own *ports[LISTEN_MOST + 1]; /* over TCP: its own, and the joiners' if that is another and its alone */
	uint32_t port_count;
	struct control_own *free;   /* of config.join_free_fd                                          */
	struct accept_limit limit;  /* at the TCP ports                                                */
	bool looks_away;            /* the limit is reached: the ports' sockets are not watched        */
	uint32_t first_looked_at;   /* of the ports, in turn                                           */
	uint32_t guests;            /* connections that have not proved themselves                     */
	uint64_t accepted;          /* connections, so far                                             */
};

struct control {
	struct control_accept accept;
	struct control_config config;
	pthread_t thread;
	struct loop *loop;
	struct loop own_loop;    /* unless it was given one */
	struct loop_task cmds;   /* there are some          */
	uint64_t next_tick_ns;
	struct connection_ways ways;
	struct connection *connections;
	uint64_t opened_ns;
	bool has_settled;           /* control_settle(): all have met */
	struct fd_exchange fd_exchange;         /* of descriptors of this host's ranks */
	bool is_serving;            /* the first rank: all have left theirs */
	uint32_t served;            /* and how many have got them all       */
	struct connection **control; /* by rank: the open or coming control connection that is spoken on */
	struct reliable *reliable;    /* by rank */
	uint64_t *dialled;     /* by rank: lanes that were dialled, a bit each, where connections are replaced */
	uint64_t *newest;      /* by rank and lane: which of them it was given last */
	struct handshake_config listener;
	struct rng rng;
	int join_free_fd;      /* readable once this control is closed; -1: nobody shares its door. Guarded by the lock */
	atomic_uint newcomers; /* who wait at the door */
	atomic_uint sure;      /* of them: have answered since they were last asked */
	bool has_posted;       /* the thread itself has left cmdq for itself   */
	bool has_queued;       /* there may be messages that have not left         */

	struct cmdq cmdq; /* what other threads ask for */
	pthread_mutex_t lock;   /* what follows */
	bool ticks;
};

/* ---- control.c ---- */

/* The loop tells of it from now on, for what it waits for. */
void control_watch(struct control *control, struct connection *connection);
/* Before its descriptor is closed or handed on. */
void control_unwatch(struct control *control, struct connection *connection);
/* The loop tells of one of the node's own descriptors; NULL: no memory for it. */
struct control_own *control_watch_own(struct control *control, int fd, enum control_own_kind kind);
void control_insert(struct control *control, struct connection *connection);
/* Closes and frees it. */
void control_remove(struct control *control, struct connection *connection);
/* Moves a link as far as it goes. It may be gone afterwards. */
void control_turn_connection(struct control *control, struct connection *connection);

/* ---- connect.c ---- */

/* How long a rank is tried to be reached, or waited for at the shelf: while opening as long as others may still come to join. */
uint64_t connect_patience_ns(const struct control *control, uint64_t now_ns);
/* A link that is to be dialled; NULL: no memory. Then it is dialled, and may be gone afterwards. */
struct connection *control_new_dial(struct control *control, uint32_t peer, enum hello_purpose purpose, uint32_t lane, uint64_t patience_ns);
void control_dial_now(struct control *control, struct connection *connection);
/* Both; it may be gone already if it failed for good at once, and somebody was told. */
void control_dial(struct control *control, uint32_t peer, enum hello_purpose purpose, uint32_t lane, uint64_t patience_ns);
/* As control_look_for(). */
void connect_look_for(struct control *control, uint32_t peer);
/* A dialled link did not come about, this time or for good: then it is gone, and whom it concerns is told. */
void connect_failed(struct control *control, struct connection *connection);
/* A connection for this purpose cannot be made: whom it concerns is told. */
void connect_unreachable(struct control *control, uint32_t peer, uint8_t purpose, uint32_t lane, const struct error *why);

/* ---- data_connection.c ---- */

/* Dials a lane, unless it has been dialled and connections are replaced one by one. */
void data_connection_dial(struct control *control, uint32_t peer, uint32_t lane);
/* Of a link that is proved, for data: has another one been proved that was accepted later? If not, this is the newest now. */
bool data_connection_is_outdated(struct control *control, const struct connection *connection);
/* It is handed to whom it is for; the link is gone. */
void data_connection_done(struct control *control, struct connection *connection);

/* ---- accept.c ---- */

/* From now on it is told when somebody knocks, at the Unix socket too. False: no memory for it. */
bool accept_watch(struct control *control);
/* Whoever else had the door has closed it. */
void accept_open_door(struct control *control);
/* Lets in who waits at a listening socket. True: nobody waits there any more. */
bool accept_accept(struct control *control, int listen_fd);
/* While the accept_limit is locked: lets in as many as have tickets, at all ports in turn. Returns when to look again. */
uint64_t accept_look(struct control *control, uint64_t now);
/* Who was let in has proved itself. */
void accept_proved(struct control *control, struct connection *connection);

/* ---- recheck.c ---- */

/*
 * The last control connection to a rank has broken: dials it once more, in so long, first where it was (far). count: of that connection
 * (peer_connection.h). If it does not come about, closed() is told, and why.
 */
void recheck_begin(struct control *control, uint32_t peer, uint32_t count, uint64_t wait_ns, const struct node_address *far,
                 const struct error *why);
/* Of a link that was dialled for that: nobody listens there, and where a connection has just ended there is no need to ask twice. */
bool recheck_is_refused(const struct control *control, const struct connection *connection);
/* Its time is over. True: somebody listens, so the process is there, busy or stopped, and silence will tell: it goes on. */
bool recheck_goes_on(const struct control *control, struct connection *connection, uint64_t now_ns);

/* ---- joiner_queue.c ---- */

/* A link at the door has something to say, or has only just come. */
void joiner_queue_turn(struct control *control, struct connection *connection);
/* A link goes away; it may have been one at the door. */
void joiner_queue_gone(struct control *control, struct connection *connection);
/*
 * Time to look after a link at the door: one that waits hears that we are there, one that was let in is asked whether it is, one that does not
 * fit has had its time.
 */
void joiner_queue_due(struct control *control, struct connection *connection, uint64_t now_ns);

/* ---- fd_handover.c ---- */

/* Moves descriptors over a link as far as it goes. */
void fd_handover_turn(struct control *control, struct connection *connection);
/* All have been moved: the link goes away. */
void fd_handover_done(struct control *control, struct connection *connection);
/* The first rank: when all have left theirs, those who wait are served. */
void fd_handover_serve(struct control *control);

#endif
