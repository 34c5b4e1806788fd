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

enum connection_state {
	CONNECTION_WAITING,    /* to be dialled again at retry_ns                    */
	CONNECTION_CONNECTING, /* connect() is under way                             */
	CONNECTION_SHAKING,    /* handshake                                          */
	CONNECTION_HANDING,    /* proved, for descriptors: they are left, or handed  */
	CONNECTION_OPEN,       /* a control connection                               */
	CONNECTION_DOOR,       /* proved: a newcomer, who waits to be let in         */
	CONNECTION_DONE,       /* proved, for a lane or a probe: to be handed on     */
	CONNECTION_BROKEN,     /* err says why                                       */
};

#define RANK_WHO 96u

struct control;

struct connection {
	struct connection *next, *before;
	struct control *owner;
	struct loop_fd watched; /* of its owner's loop */
	int fd;
	uint8_t state;
	bool dialled, local;
	bool is_guest;          /* accepted and not yet proved                         */
	uint64_t number;        /* of those that were accepted: how many there were with it */
	bool is_spoken_on;      /* a message came                                      */
	bool is_announced;      /* open, and the control's user has been told          */
	bool is_invited;        /* a newcomer that has been let in                     */
	bool is_sure;           /* a newcomer that has answered since it was last asked */
	bool has_joined;        /* a newcomer that has been let in, and has come       */
	bool is_unfit;          /* one whose job or settings are others, or that was let in in vain: it is told why, and goes */
	bool is_refused;        /* and has been                                        */
	uint32_t invited_as;    /* a newcomer that has been let in: the rank it is to be */
	bool is_promised;       /* a newcomer on whom a group counts                   */
	uint32_t promised_to;   /* and the channel of that, also once it has been let in */
	uint64_t asked_ns;      /* a newcomer: since when it owes an answer; 0: it does not */
	char who[RANK_WHO];     /* a newcomer: what it calls itself, "process 71 on node3" */
	bool is_reported;       /* this attempt has been unanswered for long           */
	bool has_left;          /* of descriptors: ours, or those at the other end, are on the shelf */
	bool wants_room;        /* of descriptors: there are some to be handed         */
	bool is_check;          /* dialled as one has broken: is the rank still there? */
	uint32_t fd_exchange_at;      /* how many were handed: see fd_exchange.h                   */
	uint32_t peer;          /* known from the start if dialled, else once proved   */
	uint8_t purpose;        /* enum hello_purpose                                  */
	uint32_t lane;
	uint32_t rail;          /* that it is dialled on, or ROUTE_ANY                 */
	bool rotates;           /* each attempt takes another rail                     */
	uint64_t queued;        /* the last message that it was given (reliable.h)         */
	struct path_patience patience;
	uint64_t deadline_ns;   /* until it must be proved                             */
	uint64_t began_ns;      /* this attempt                                        */
	uint64_t connect_ns;    /* until it must be connected, and proved if it rotates */
	uint64_t retry_ns;
	uint64_t dialled_ns;    /* for the first time                                  */
	uint32_t attempts;
	uint32_t refusals;      /* one after the other: nobody listens there           */
	struct backoff backoff;
	struct handshake handshake;
	struct error err;
	struct error doubt;     /* of a check: why there is doubt                      */
	struct node_address far; /* of a control connection through TCP that was proved: where the other end is */
	char way[ROUTE_TEXT];   /* the attempt's: "10.0.0.2 port 4711 through eth1"    */
	uint8_t *in; /* what has arrived of messages: bytes from in_at up to in_bytes */
	uint32_t in_at, in_bytes;
	uint8_t *out; /* queued messages */
	size_t out_at, out_bytes, out_capacity;
};

struct connection *connection_new(void);
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
