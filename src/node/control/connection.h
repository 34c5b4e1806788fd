/*
 * connection.h - one connection of a node, from the first byte until it is handed on or closed. Private to the control,
 * driven by the control thread; its sockets do not block.
 *
 * A connection is dialled or accepted, is proved by a handshake, and then serves its purpose: the control hands a data
 * connection on to its lane; a control connection carries messages; one for descriptors ends when they have been moved
 * (fd_exchange.h).
 */
#ifndef NODE_CONTROL_CONNECTION_H
#define NODE_CONTROL_CONNECTION_H

#include "base/list.h"
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
 *     WAITING -> CONNECTING -> SHAKING -> OPEN, JOINER, DONE, or HANDING -> DONE
 *        ^____________|___________|                    (accepted: from SHAKING on)
 */
enum connection_state {
	CONNECTION_WAITING,    /* to be dialled again at retry_ns */
	CONNECTION_CONNECTING, /* connect() is under way */
	CONNECTION_SHAKING,    /* the handshake is under way */
	CONNECTION_HANDING,    /* proved, for descriptors, which are being moved */
	CONNECTION_OPEN,       /* a control connection */
	CONNECTION_JOINER,     /* proved: a joiner, which waits to be admitted */
	CONNECTION_DONE,       /* proved, for a lane or a probe: to be handed on */
	CONNECTION_BROKEN,     /* err has the reason */
};

/* The only function that changes the state; asserts that the move is one of the above. */
void connection_enter(struct connection *connection, enum connection_state state);

#define RANK_WHO 96u

struct control;

/* How a connection is dialled. */
struct connection_dial {
	uint32_t rail;          /* that it is dialled on, or ROUTE_ANY */
	bool rotates;           /* each attempt takes another rail */
	bool is_reported;       /* this attempt was reported as unanswered */
	bool is_check;          /* dialled to find out whether the peer is there, because a control connection has broken */
	uint64_t dialled_ns;    /* time of the first attempt */
	uint64_t began_ns;      /* start of this attempt */
	uint64_t connect_ns;    /* deadline of this attempt to connect, and to be proved if it rotates */
	uint32_t attempts;
	uint32_t refusals;      /* in a row: no process listens there */
	struct backoff backoff;
	struct error doubt;     /* of a check: why the connection before it has broken */
	struct path_patience patience;
	char way[ROUTE_TEXT];   /* the attempt's: "10.0.0.2 port 4711 through eth1" */
};

/* A process that has proved itself and waits to be admitted to the job. */
struct connection_joiner {
	bool is_unfit;          /* its job or settings differ, or its admission has failed: it is told why, and goes */
	bool is_refused;        /* it has been told */
	bool is_sure;           /* it has answered since it was last asked */
	bool is_promised;       /* a communicator counts on it */
	uint32_t promised_to;   /* the channel of that communicator, also after the joiner was admitted */
	bool is_invited;        /* admitted */
	uint32_t invited_as;    /* ... as this rank */
	bool has_joined;        /* ... and it has joined */
	uint64_t asked_ns;      /* since when it owes an answer; 0: it owes none */
	char who[RANK_WHO];     /* its name for itself: "process 71 on node3" */
};

/* Descriptors of nodes of a host (fd_exchange.h). */
struct connection_fds {
	bool has_left;          /* the first message has been moved: the descriptors of the rank that has dialled */
	bool wants_room;        /* there are descriptors to be sent */
	uint32_t at;            /* position among the ranks (control_fd_exchange_fetch(), control_fd_exchange_hand()) */
};

struct connection_buffer {
	uint8_t *in; /* received and not yet read: bytes from in_at up to in_bytes */
	uint32_t in_at, in_bytes;
	uint8_t *out; /* queued messages */
	size_t out_at, out_bytes, out_capacity;
};

struct connection {
	struct list_node link; /* among its owner's */
	struct control *owner;
	struct loop_fd watched; /* of its owner's loop */
	int fd;
	uint8_t state;          /* enum connection_state: connection_enter() */
	bool dialled, local;
	bool is_guest;          /* accepted and not yet proved */
	bool is_spoken_on;      /* a message has arrived */
	bool is_announced;      /* open, and the owner's events have been called */
	uint64_t number;        /* of an accepted connection: its number in the order of accept() */
	uint32_t peer;          /* known from the start if dialled, else once proved */
	uint8_t purpose;        /* enum hello_purpose */
	uint32_t lane;
	uint64_t queued;        /* number of the last message queued on it (reliable.h) */
	uint64_t deadline_ns;   /* until it must be proved */
	uint64_t retry_ns;
	struct handshake handshake;
	struct error err;
	struct node_address far; /* of a proved control connection over TCP: the other end's address */
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
	uint32_t segment_bytes; /* of TCP; 0: the kernel's choice, or the library's within a host */
	uint64_t hurry_ns;      /* for one attempt of a connection that rotates: more after each round over all rails */
};

/* Closes the socket of an attempt that has failed. */
void connection_abandon(struct connection *connection);
/* Makes an attempt at the next address, or at the Unix socket of the rank. Sets state and err. */
void connection_dial(struct connection *connection, const struct connection_ways *ways);
/*
 * Binds an accepted connection to the interface that it came through: with two interfaces in one network, the kernel's
 * routes might send its packets through the other one.
 */
void connection_pin(struct connection *connection, const struct interfaces *own);
/* The rail that the connection uses, by its own address; ROUTE_ANY: none. */
uint32_t connection_rail(const struct connection *connection, const struct connection_ways *ways);
/*
 * Asks the kernel to retransmit at an even pace (on), or as usual. On a control connection or in a handshake a lost
 * message is all that is under way, so only the retransmission timer recovers it, and that doubles each time: five
 * losses in a row on a congested link are six seconds of silence. For such thin streams the kernel can retry at an even
 * pace, some times or, from Linux 6.15 on, for ever. Accepted sockets inherit it from their port.
 */
void connection_keep_pace(int fd, bool on);
/* For a connection or a listening socket: even pace, no delay of small messages, and keepalive against lost hosts. */
void connection_prepare(int fd);
/* The connection was made or accepted: begins the handshake. */
void connection_greet(struct connection *connection, const struct handshake_config *config);
/* connect() has come to an end. */
void connection_connected(struct connection *connection, const struct handshake_config *config);

/* Time of the next check, whatever its outcome. */
uint64_t connection_due(const struct connection *connection, const struct connection_ways *ways);
/* True: dialled over TCP, unanswered for long, and not reported yet. */
bool connection_is_unanswered(const struct connection *connection, uint64_t now_ns);
/*
 * Of a connection that is late: true if an answer has arrived that this thread had no time to read. Then this end is
 * late, which counts against no path, and the connection gets more time.
 */
bool connection_was_answered(struct connection *connection, const struct connection_ways *ways, uint64_t now_ns);
/* The connection is over, for this reason. */
void connection_broke(struct connection *connection, const struct error *why);
/* The deadline is over. */
void connection_late(struct connection *connection);
/* The other end was asked and has not answered in time. */
void connection_silent(struct connection *connection);

/* Moves the handshake as far as it goes. True: call again. */
bool connection_shake(struct connection *connection);
/* A message of a control connection, or of a joiner, in *out; false: none is complete, or the connection has broken. */
bool connection_receive(struct connection *connection, struct control_msg *out);
/*
 * Bytes that are no control message: count of them, at most CONTROL_BYTES * 16, at *out until the next receive; false:
 * they have not all arrived, or the connection has broken.
 */
bool connection_receive_bytes(struct connection *connection, uint32_t count, const uint8_t **out);
/* Breaks the connection if the other end, which has nothing to send at this point, has closed it. */
void connection_check_closed(struct connection *connection);
void connection_queue(struct connection *connection, const struct control_msg *msg);
/* The connection breaks: the messages for it exceed the limit; or its messages violate the protocol. */
void connection_overflows(struct connection *connection);
void connection_nonsense(struct connection *connection);
void connection_flush(struct connection *connection);

bool connection_wants_to_write(const struct connection *connection);
/* When bytes last arrived, as the kernel knows, read or not; 0: unknown, and none wait to be read. */
uint64_t connection_last_sign(const struct connection *connection, uint64_t now_ns);

#endif
