/*
 * control_state.h - what the steward is made of. Private to control.c, connect.c, data_connection.c, peer_connection.c, recheck.c, accept.c, fd_handover.c and
 * joiners.c, for its thread.
 *
 * control.c has the links, what others ask for, and the thread; connect.c the connections that this rank makes; data_connection.c those for data;
 * peer_connection.c which control connection is spoken on; recheck.c whether a rank is there whose connection has ended; accept.c who is let in
 * where the rank listens; fd_handover.c the descriptors of the ranks of this host; joiners.c who waits at the door.
 */
#ifndef NODE_CONTROL_CONTROL_STATE_H
#define NODE_CONTROL_CONTROL_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "node/control/accept_limit.h"
#include "node/control/cmdq.h"
#include "node/control/connection.h"
#include "node/control/reliable.h"

struct steward {
	struct steward_config config;
	pthread_t thread;
	int epoll_fd, wake_fd;
	struct link_ways ways;
	int listen_fds[LISTEN_MOST];
	uint32_t listen_count;
	struct link *links;
	uint32_t guests;
	struct turnstile turnstile; /* at the TCP ports */
	bool looks_away;            /* it is locked: nothing is heard of the ports' sockets */
	uint64_t opened_ns;
	bool has_settled;           /* steward_settle(): all have met */
	uint32_t first_looked_at;   /* of the ports, in turn */
	struct shelf shelf;         /* of descriptors of this host's ranks */
	bool is_serving;            /* the first rank: all have left theirs */
	uint32_t served;            /* and how many have got them all       */
	struct link **control; /* by rank: the open or coming control connection that is spoken on */
	struct talk *talks;    /* by rank */
	uint64_t *dialled;     /* by rank: lanes that were dialled, a bit each, where connections are replaced */
	uint64_t accepted;     /* connections, so far */
	uint64_t *newest;      /* by rank and lane: which of them it was given last */
	struct handshake_config listener;
	struct rng rng;
	bool is_door_open;     /* config.door_fd is ours alone */
	int door_free_fd;      /* readable once this steward is closed; -1: nobody shares its door. Guarded by the lock */
	atomic_uint newcomers; /* who wait at the door */
	atomic_uint sure;      /* of them: have answered since they were last asked */
	pthread_t self;        /* of the thread, once it runs */
	atomic_bool runs;
	bool has_posted;       /* the thread itself has left errands for itself   */
	bool has_queued;       /* there may be messages that have not left         */

	struct errands errands; /* what other threads ask for */
	pthread_mutex_t lock;   /* what follows */
	bool quits, ticks;
};

/* ---- control.c ---- */

/* Tells epoll what the link waits for; how: as epoll_ctl(2) has it. */
void steward_watch(struct steward *steward, struct link *link, int how);
/* Whenever one of the steward's own descriptors can be read; -1 is fine. */
bool steward_watch_own(struct steward *steward, int *fd);
void steward_insert(struct steward *steward, struct link *link);
/* Closes and frees it. */
void steward_remove(struct steward *steward, struct link *link);
/* Moves a link as far as it goes. It may be gone afterwards. */
void steward_turn_link(struct steward *steward, struct link *link);

/* ---- connect.c ---- */

/* How long a rank is tried to be reached, or waited for at the shelf: while opening as long as others may still come to join. */
uint64_t dials_patience_ns(const struct steward *steward, uint64_t now_ns);
/* A link that is to be dialled; NULL: no memory. Then it is dialled, and may be gone afterwards. */
struct link *steward_new_dial(struct steward *steward, uint32_t peer, enum hello_purpose purpose, uint32_t lane, uint64_t patience_ns);
void steward_dial_now(struct steward *steward, struct link *link);
/* Both; it may be gone already if it failed for good at once, and somebody was told. */
void steward_dial(struct steward *steward, uint32_t peer, enum hello_purpose purpose, uint32_t lane, uint64_t patience_ns);
/* As steward_look_for(). */
void dials_look_for(struct steward *steward, uint32_t peer);
/* A dialled link did not come about, this time or for good: then it is gone, and whom it concerns is told. */
void dials_failed(struct steward *steward, struct link *link);
/* A connection for this purpose cannot be made: whom it concerns is told. */
void dials_unreachable(struct steward *steward, uint32_t peer, uint8_t purpose, uint32_t lane, const struct error *why);

/* ---- data_connection.c ---- */

/* Dials a lane, unless it has been dialled and connections are replaced one by one. */
void lanes_dial(struct steward *steward, uint32_t peer, uint32_t lane);
/* Of a link that is proved, for data: has another one been proved that was accepted later? If not, this is the newest now. */
bool lanes_is_outdated(struct steward *steward, const struct link *link);
/* It is handed to whom it is for; the link is gone. */
void lanes_done(struct steward *steward, struct link *link);

/* ---- accept.c ---- */

/* Where the rank listens over TCP: its own ports, and the door if that is another. */
uint32_t ports_count(const struct steward *steward);
int *ports_at(struct steward *steward, uint32_t i);
/* From now on it is told when somebody knocks, at the Unix socket too. False: no memory for it. */
bool ports_watch(struct steward *steward);
/* Whoever else had the door has closed it. */
void ports_open_door(struct steward *steward);
/* Lets in who waits at a listening socket. True: nobody waits there any more. */
bool ports_accept(struct steward *steward, int listen_fd);
/* While the turnstile is locked: lets in as many as have tickets, at all ports in turn. Returns when to look again. */
uint64_t ports_look(struct steward *steward, uint64_t now);
/* Who was let in has proved itself. */
void ports_proved(struct steward *steward, struct link *link);

/* ---- recheck.c ---- */

/*
 * The last control connection to a rank has broken: dials it once more, in so long, first where it was (far). count: of that connection
 * (peer_connection.h). If it does not come about, closed() is told, and why.
 */
void check_begin(struct steward *steward, uint32_t peer, uint32_t count, uint64_t wait_ns, const struct card_address *far,
                 const struct error *why);
/* Of a link that was dialled for that: nobody listens there, and where a connection has just ended there is no need to ask twice. */
bool check_is_refused(const struct steward *steward, const struct link *link);
/* Its time is over. True: somebody listens, so the process is there, busy or stopped, and silence will tell: it goes on. */
bool check_goes_on(const struct steward *steward, struct link *link, uint64_t now_ns);

/* ---- joiners.c ---- */

/* A link at the door has something to say, or has only just come. */
void newcomers_turn(struct steward *steward, struct link *link);
/* A link goes away; it may have been one at the door. */
void newcomers_gone(struct steward *steward, struct link *link);
/*
 * Time to look after a link at the door: one that waits hears that we are there, one that was let in is asked whether it is, one that does not
 * fit has had its time.
 */
void newcomers_due(struct steward *steward, struct link *link, uint64_t now_ns);

/* ---- fd_handover.c ---- */

/* Moves descriptors over a link as far as it goes. */
void handing_turn(struct steward *steward, struct link *link);
/* All have been moved: the link goes away. */
void handing_done(struct steward *steward, struct link *link);
/* The first rank: when all have left theirs, those who wait are served. */
void handing_serve(struct steward *steward);

#endif
