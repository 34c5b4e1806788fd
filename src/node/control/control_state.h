/*
 * control_state.h - the state of a control, and the functions that its files share. Private to this folder; control
 * thread only, except where a lock or an atomic is named.
 *
 * control.c: the list of connections, commands, timers and the thread; connect.c: connections that the node makes;
 * data_connection.c: connections of lanes and probes; peer_connection.c: which control connection carries messages;
 * recheck.c: is a peer there whose connection has ended; accept.c: accepted connections; fd_handover.c: descriptors of
 * the ranks of this host; joiner_queue.c: joiners that wait to be admitted.
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
	CONTROL_OWN_PORT,    /* a listening socket */
	CONTROL_OWN_FREE,    /* config.join_free_fd */
	CONTROL_OWN_NETLINK,
};

struct control_own {
	struct loop_fd watched;
	struct control *control;
	enum control_own_kind kind;
};
#define CONTROL_OWN_MOST (LISTEN_MOST + 4u)

/* Where the node listens, and the connections that it has accepted there. */
struct control_accept {
	int listen_fds[LISTEN_MOST];
	uint32_t listen_count;
	struct control_own own[CONTROL_OWN_MOST]; /* watched descriptors beside connections */
	uint32_t own_count;
	/* TCP sockets: the node's own, and that of the join address if it differs and no other control has it */
	struct control_own *ports[LISTEN_MOST + 1];
	uint32_t port_count;
	struct control_own *free;   /* of config.join_free_fd */
	struct accept_limit limit;  /* at the TCP ports */
	bool ports_paused;            /* the limit is locked: the ports are not watched */
	uint32_t first_port;   /* rotates: the port at which the next batch begins */
	uint32_t guests;            /* unproved connections */
	uint64_t accepted;          /* connections so far */
};

struct control {
	struct control_accept accept;
	struct control_config config;
	pthread_t thread;
	struct loop *loop;
	struct loop own_loop;    /* used unless the owner gives a loop */
	struct loop_task cmds;   /* wakes the loop for commands */
	uint64_t next_tick_ns;
	struct connection_ways ways;
	struct list connections; /* the newest first */
	uint64_t opened_ns;
	bool has_settled;           /* control_settle(): all have joined */
	struct fd_exchange fd_exchange; /* among this host's ranks */
	bool is_serving;            /* the first rank: all have sent their descriptors */
	uint32_t served;            /* the first rank: number of ranks that have got all descriptors */
	struct connection **control; /* by rank: the control connection that carries messages, open or being made */
	struct reliable *reliable;  /* by rank */
	uint64_t *dialled;          /* by rank: a bit per lane that was dialled, where connections are replaced */
	uint64_t *newest;           /* by rank and lane: number of the newest accepted connection */
	struct handshake_config listener;
	struct rng rng;
	int join_free_fd;      /* readable once this control is closed; -1: no other shares its port. Guarded by the lock */
	atomic_uint joiners; /* joiners that wait to be admitted */
	atomic_uint sure;      /* of them: have answered since they were last asked */
	bool has_posted;       /* the control thread has left work for its next turn */
	bool has_queued;       /* reliable messages may not have been given to their connections */

	struct cmdq cmdq;       /* commands of other threads */
	pthread_mutex_t lock;   /* guards the fields below */
	bool ticks;
};

/* ---- control.c ---- */

/* Watches a connection for the events that its state needs, from now on. */
void control_watch(struct control *control, struct connection *connection);
/* Before the descriptor is closed or handed on. */
void control_unwatch(struct control *control, struct connection *connection);
/* Watches one of the node's own descriptors; NULL: no memory. */
struct control_own *control_watch_own(struct control *control, int fd, enum control_own_kind kind);
void control_insert(struct control *control, struct connection *connection);
/* All connections, the newest first; NULL: there are no more. */
static inline struct connection *control_first(const struct control *control)
{
	return list_item(control->connections.first, struct connection, link);
}
static inline struct connection *connection_next(const struct connection *connection)
{
	return list_item(connection->link.next, struct connection, link);
}
/* Closes and frees the connection. */
void control_remove(struct control *control, struct connection *connection);
/* Moves a connection as far as it goes. It may be freed afterwards. */
void control_turn_connection(struct control *control, struct connection *connection);

/* ---- connect.c ---- */

/* For how long a peer is tried, or waited for in the fd exchange: until all have joined, as long as peers may join. */
uint64_t connect_patience_ns(const struct control *control, uint64_t now_ns);
/* A connection to be dialled, by control_dial_now(), which may free it; NULL: no memory. */
struct connection *control_new_dial(struct control *control, uint32_t peer, enum hello_purpose purpose, uint32_t lane,
                                    uint64_t patience_ns);
void control_dial_now(struct control *control, struct connection *connection);
/* Both. If the attempt fails for good at once, the connection is freed and its owner's event called. */
void control_dial(struct control *control, uint32_t peer, enum hello_purpose purpose, uint32_t lane,
                  uint64_t patience_ns);
/* As control_look_for(). */
void connect_look_for(struct control *control, uint32_t peer);
/* An attempt has failed. If it was the last, the connection is freed and its owner's event called. */
void connect_failed(struct control *control, struct connection *connection);
/* A connection for this purpose cannot be made: calls its owner's event. */
void connect_unreachable(struct control *control, uint32_t peer, uint8_t purpose, uint32_t lane,
                         const struct error *why);

/* ---- data_connection.c ---- */

/* Dials a lane, unless it has been dialled and connections are replaced one by one. */
void data_connection_dial(struct control *control, uint32_t peer, uint32_t lane);
/*
 * Of a proved data connection: true if one that was accepted later was proved before it. If not, it is the newest from
 * now on.
 */
bool data_connection_is_outdated(struct control *control, const struct connection *connection);
/* Hands the descriptor on to its owner and frees the connection. */
void data_connection_done(struct control *control, struct connection *connection);

/* ---- accept.c ---- */

/* Watches all listening sockets, the Unix socket too. False: no memory. */
bool accept_watch(struct control *control);
/* The other control that had the join address has closed it: accepts there from now on. */
void accept_take_join_port(struct control *control);
/* Accepts connections that wait at a listening socket. True: none waits there any more. */
bool accept_accept(struct control *control, int listen_fd);
/*
 * While the limit is locked: accepts as many connections as there are tokens, at all ports in turn. Returns the time of
 * the next batch.
 */
uint64_t accept_batch(struct control *control, uint64_t now);
/* An accepted connection is proved. */
void accept_proved(struct control *control, struct connection *connection);

/* ---- recheck.c ---- */

/*
 * The last control connection to a peer has broken: dials the peer once more, after wait_ns, first at its last address
 * (far). count: the broken connection's number (peer_connection.h). If that fails, calls closed() with `why`.
 */
void recheck_begin(struct control *control, uint32_t peer, uint32_t count, uint64_t wait_ns,
                   const struct node_address *far, const struct error *why);
/* Of such a connection: true if no process listens there. It has just ended, so one refusal per address is enough. */
bool recheck_is_refused(const struct control *control, const struct connection *connection);
/*
 * Of such a connection at its deadline: true if it was connected, so that the process is there, busy or stopped. Then
 * its deadline is extended: liveness decides.
 */
bool recheck_goes_on(const struct control *control, struct connection *connection, uint64_t now_ns);

/* ---- joiner_queue.c ---- */

/* A joiner's connection is readable, or was just proved. */
void joiner_queue_turn(struct control *control, struct connection *connection);
/* Before any connection is removed; it may be a joiner's. */
void joiner_queue_gone(struct control *control, struct connection *connection);
/*
 * At retry_ns of a joiner's connection: a waiting joiner gets a sign of life, an admitted one is asked for one, and one
 * that does not fit has had its time.
 */
void joiner_queue_due(struct control *control, struct connection *connection, uint64_t now_ns);

/* ---- fd_handover.c ---- */

/* Moves descriptors over a connection as far as it goes. */
void control_fd_handover_turn(struct control *control, struct connection *connection);
/* All descriptors have been moved: removes the connection. */
void control_fd_handover_done(struct control *control, struct connection *connection);
/* The first rank: once all have sent their descriptors, serves the waiting ranks. */
void control_fd_handover_serve(struct control *control);

#endif
