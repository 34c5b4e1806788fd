/*
 * connection.h - one connection of the control, from the first byte until it is handed on or closed.
 *
 * Private to the control, driven by its thread. A link is dialled or accepted, proves itself, and
 * then is what its purpose says: the control hands a lane's connection on; a control
 * connection carries messages; one for descriptors is over when they are handed (fd_exchange.h).
 */
#ifndef NODE_CONTROL_CONNECTION_H
#define NODE_CONTROL_CONNECTION_H

#include "base/loop.h"
#include "node/auth/handshake.h"
#include "node/net/backoff.h"
#include "node/net/route.h"
#include "transport/path.h"
#include "wire/control_msg.h"

struct connection;

/*
 * The life of a connection:
 *
 *     WAITING -> CONNECTING -> SHAKING -> OPEN, DOOR, DONE, or HANDING -> DONE
 *        ^____________|___________|                    (accepted: from SHAKING on)
 */
enum connection_state {
	CONNECTION_WAITING,    /* to be dialled again at retry_ns                        */
	CONNECTION_CONNECTING, /* connect() is under way                                 */
	CONNECTION_SHAKING,    /* the handshake is under way                             */
	CONNECTION_HANDING,    /* proved, for descriptors: they are left, or handed      */
	CONNECTION_OPEN,       /* a control connection                                   */
	CONNECTION_DOOR,       /* proved: a joiner, which waits to be admitted           */
	CONNECTION_DONE,       /* proved, for a lane or a probe: to be handed on         */
	CONNECTION_BROKEN,     /* err says why                                           */
};

/* The one place where a state changes; asserts that the move is one of the above. */
void connection_enter(struct connection *connection, enum connection_state state);

#define RANK_WHO 96u

struct control;

/* How a connection is dialled. */
struct connection_dial {
	uint32_t rail;          /* that it is dialled on, or ROUTE_ANY                       */
	bool rotates;           /* each attempt takes another rail                           */
	bool is_reported;       /* this attempt has been unanswered for long                 */
	bool is_check;          /* dialled as one has broken: is the peer still there?       */
	uint64_t dialled_ns;    /* for the first time                                        */
	uint64_t began_ns;      /* this attempt                                              */
	uint64_t connect_ns;    /* until it must be connected, and proved if it rotates      */
	uint32_t attempts;
	uint32_t refusals;      /* one after the other: no process listens there             */
	struct backoff backoff;
	struct error doubt;     /* of a check: why there is doubt                            */
	struct path_patience patience;
	char way[ROUTE_TEXT];   /* the attempt's: "10.0.0.2 port 4711 through eth1"          */
};

/* A process that has proved itself and waits to be admitted to the job. */
struct connection_joiner {
	bool is_unfit;          /* its job or settings are others, or it was admitted in vain: it is told why, and goes */
	bool is_refused;        /* and has been                                              */
	bool is_sure;           /* it has answered since it was last asked                   */
	bool is_promised;       /* a communicator counts on it                               */
	uint32_t promised_to;   /* and the channel of that, also once it has been admitted   */
	bool is_invited;        /* admitted                                                  */
	uint32_t invited_as;    /* ... as this rank                                          */
	bool has_joined;        /* ... and it has come                                       */
	uint64_t asked_ns;      /* since when it owes an answer; 0: it does not              */
	char who[RANK_WHO];     /* its name for itself: "process 71 on node3"                */
};

/* Descriptors of nodes of a host (fd_exchange.h). */
struct connection_fds {
	bool has_left;          /* this node's, or those at the other end, are at the first node */
	bool wants_room;        /* there are some to be handed                               */
	uint32_t at;            /* how many were handed                                      */
};

struct connection_buffer {
	uint8_t *in; /* received, not yet taken: bytes from in_at up to in_bytes */
	uint32_t in_at, in_bytes;
	uint8_t *out; /* queued messages */
	size_t out_at, out_bytes, out_capacity;
};

struct connection {
	struct connection *next, *before;
	struct control *owner;
	struct loop_fd watched; /* of its owner's loop */
	int fd;
	uint8_t state;          /* enum connection_state: connection_enter() */
	bool dialled, local;
	bool is_guest;          /* accepted and not yet proved                         */
	bool is_spoken_on;      /* a message came                                      */
	bool is_announced;      /* open, and the owner's user has been told            */
	uint64_t number;        /* of those that were accepted: how many there were with it */
	uint32_t peer;          /* known from the start if dialled, else once proved   */
	uint8_t purpose;        /* enum hello_purpose                                  */
	uint32_t lane;
	uint64_t queued;        /* the last message that it was given (reliable.h)     */
	uint64_t deadline_ns;   /* until it must be proved                             */
	uint64_t retry_ns;
	struct handshake handshake;
	struct error err;
	struct node_address far; /* of a control connection through TCP that was proved: where the other end is */
	struct connection_dial dial;
	struct connection_joiner joiner;
	struct connection_fds fds;
	struct connection_buffer buffer;
};

struct connection *connection_new(void); /* in state CONNECTION_WAITING */
void connection_free(struct connection *connection); /* closes what it holds */

struct connection_ways {
	const struct rails *rails;
	const struct roster *roster;
	const struct interfaces *own;
	uint32_t self;
	uint32_t segment_bytes; /* of TCP; 0: the kernel's choice, or ours within a host */
	uint64_t hurry_ns;      /* for one attempt of a connection that rotates: more each time that all rails were tried */
};

/* Closes one that was dialled in vain. */
void connection_abandon(struct connection *connection);
/* Dials: the attempt's address, or the Unix socket of the rank. state and err are set. */
void connection_dial(struct connection *connection, const struct connection_ways *ways);
/* What was accepted on an interface leaves through it: two interfaces in one network would not do that by themselves. */
void connection_pin(struct connection *connection, const struct interfaces *own);
/* The rail that it goes on, by its own address; ROUTE_ANY: none. */
uint32_t connection_rail(const struct connection *connection, const struct connection_ways *ways);
/*
 * A word that gets lost is all that is under way on a control connection, or in a handshake, so nothing but the retransmission timer brings
 * it back, and that doubles each time: five losses in a row on a link that others fill are six seconds of silence. Where as little as this is
 * under way the kernel can be asked to try again at an even pace, some times or, from Linux 6.15 on, for ever. What is accepted has it from
 * its port.
 */
void connection_keep_pace(int fd, bool on);
/* That, and small messages leave at once, and a host that has vanished is noticed: for a connection, or the port where it is accepted. */
void connection_prepare(int fd);
/* The connection stands, or was accepted: the handshake begins. */
void connection_greet(struct connection *connection, const struct handshake_config *config);
/* connect() has come to an end. */
void connection_connected(struct connection *connection, const struct handshake_config *config);

/* When somebody has to look at it, whatever comes of it. */
uint64_t connection_due(const struct connection *connection, const struct connection_ways *ways);
/* Was it dialled over TCP, has not been answered for long, and was not reported yet? */
bool connection_is_unanswered(const struct connection *connection, uint64_t now_ns);
/*
 * Of one that is late: has it been answered all the same, and this thread had no time to look? Then it is this end that is late, which counts
 * against no way, and it has more time.
 */
bool connection_has_news(struct connection *connection, const struct connection_ways *ways, uint64_t now_ns);
/* It is over, and this is why. */
void connection_broke(struct connection *connection, const struct error *why);
/* It has taken too long. */
void connection_late(struct connection *connection);
/* The other end was asked, and has not answered for long. */
void connection_silent(struct connection *connection);

/* Moves what can be moved up to the next state. True: something more may be moved. */
bool connection_shake(struct connection *connection);
/* A message of a control connection, or of a newcomer: true, into *out. */
bool connection_receive(struct connection *connection, struct control_msg *out);
/* So many bytes, at most CONTROL_BYTES * 16, that are no message: true: they are here, at *out until something else is received. */
bool connection_receive_bytes(struct connection *connection, uint32_t count, const uint8_t **out);
/* Is somebody still there who has nothing to say, at a shelf or a door? */
void connection_look_at_door(struct connection *connection);
void connection_queue(struct connection *connection, const struct control_msg *msg);
/* What it should carry is more than anybody keeps. What came on it cannot be. */
void connection_overflows(struct connection *connection);
void connection_nonsense(struct connection *connection);
void connection_flush(struct connection *connection);

bool connection_wants_to_write(const struct connection *connection);
/* When bytes came last, by the kernel's account, read or not; 0: that is not known, and none wait to be read. */
uint64_t connection_last_sign(const struct connection *connection, uint64_t now_ns);

#endif
