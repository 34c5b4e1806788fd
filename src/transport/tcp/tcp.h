/*
 * tcp.h - the messages of one lane over connected stream sockets.
 *
 * TCP over IPv4 or IPv6; a socket pair of AF_UNIX serves as well. Sockets come from outside, connected and
 * authenticated: this file opens none, and knows no job, key or address.
 *
 * One thread at a time drives a lane's transport; only tcp_wake() may be called by others. Nothing blocks but
 * tcp_poll(), as long as it is told to. Messages are pulled out of the user when the socket can take them, so a peer
 * that does not read costs the sender no memory: pulled messages are CONN_GATHER headers and pointers at most.
 *
 * A peer may have two connections, when both ends dialled at once. Each end sends on the first that it was given and
 * keeps to it; it receives on one connection too, not necessarily the same. So the order of messages is kept, and a
 * peer that sends on both is refused.
 *
 * With config.resumes the connections to a peer can be replaced by another one that goes another way (resume.h). Bytes
 * that one has sent are kept until the kernel of the other end has them, which costs a copy; the new one begins where
 * the old ones ended, so no byte gets lost and none comes twice. A peer then has one connection at a time, and their
 * maker hands both ends the same ones in the same order: one of the two ranks dials, always the same.
 *
 * Loss. A peer is lost when any of its connections ends. Data that had arrived before the end is delivered first.
 * lost() is called once per peer, with
 *     ESP_EPEER     the peer closed between two messages: it left, or was killed while idle
 *     ESP_ELINK     the connection was reset, timed out, or ended within a message (a peer that
 *                   closes while it is being sent to may show as this or as the one above)
 *     ESP_ECORRUPT  bytes that are no frame, are not as they were sent, or came on a second connection
 *     another       the user's answer to begin() or credit(), or the status given to tcp_drop()
 * If connections can be replaced, one that the network reports to be without a way (no route, no answer), or that was
 * reset, ends nothing: it waits. Messages that the user answers with ESP_PENDING are read and dropped. Whether an
 * orderly end is a failure is the user's to say: the transport cannot know whether more was expected. A user that has
 * failed (struct transport_user, failed()) ends it all: every connection is closed, and neither its memory nor itself
 * is touched any more. One that has not goes on with the peers that are left.
 */
#ifndef TRANSPORT_TCP_TCP_H
#define TRANSPORT_TCP_TCP_H

#include "transport/path.h"
#include "transport/poller.h"
#include "transport/transport.h"

struct tcp;

struct tcp_config {
	uint32_t peers;          /* they are numbered from 0                                        */
	uint32_t send_buffer;    /* SO_SNDBUF of each connection; 0: the kernel's choice            */
	uint32_t receive_buffer; /* SO_RCVBUF; 0: the kernel's choice                               */
	uint32_t unsent_most;    /* TCP_NOTSENT_LOWAT: bytes the kernel holds unsent; 0: its choice */
	bool resumes;            /* connections can be replaced: the same at both ends              */
	struct poller *poller;   /* shared with other transports of the thread, borrowed; NULL: one of its own */
	/*
	 * There is something for a peer without a connection: called once, until tcp_adopt() or
	 * tcp_drop() answers, either within the call or later.
	 */
	void (*dial)(void *context, uint32_t peer);
	void *dial_context;
};

/* Borrows user and context until tcp_close(). ESP_ENOMEM, ESP_ELIMIT (descriptors). */
ESP_CHECKED enum esp_status tcp_open(const struct tcp_config *config, const struct transport_user *user, void *context,
                                     struct tcp **out, struct error *err);

/*
 * Closes all connections; no callback comes any more. Bytes that the kernel still holds may be lost with them, so close
 * when the peers are known to be done. NULL is fine.
 */
void tcp_close(struct tcp *tcp);

/*
 * A connection to peer. Takes the descriptor, also if this fails, and makes it non-blocking;
 * its next byte must be the first of a frame. checked: data that is sent on it carries
 * checksums (what is received says so itself). ESP_EINVAL: not a stream socket, or no such
 * peer (one that is not connected any more is lost by the next tcp_poll()). ESP_EPEER: the
 * peer was lost before, or the user has failed. ESP_ENOMEM, ESP_ELIMIT.
 */
ESP_CHECKED enum esp_status tcp_adopt(struct tcp *tcp, uint32_t peer, int fd, bool checked, struct error *err);

/*
 * The same, in place of all connections that the peer has had: what they still owe leaves on this one, once the other
 * end has also been given its end of it. For config.resumes.
 */
ESP_CHECKED enum esp_status tcp_replace(struct tcp *tcp, uint32_t peer, int fd, bool checked, struct error *err);

/* Is a connection that has taken another's place not as far yet as that one was? */
bool tcp_is_resuming(const struct tcp *tcp);

/*
 * The channel has failed or is closed (transport.h): its messages that were pulled and have not
 * begun to leave are dropped, one that has left in part is completed from a copy. Of a message
 * that is arriving, the rest is dropped. A peer is lost if there is no memory for the copy. Not
 * from within a callback.
 */
void tcp_forget(struct tcp *tcp, uint16_t channel);

/* The peer is gone, or cannot be reached: as if its connections had broken, with that reason. */
void tcp_drop(struct tcp *tcp, uint32_t peer, enum esp_status why);

/* A peer that was lost is back: tcp_adopt() takes connections of it again. Nothing if it is not lost. */
void tcp_readmit(struct tcp *tcp, uint32_t peer);

/*
 * Moves what can be moved, a bounded amount per connection, each in turn; but asks first
 * whether the user has failed by itself, so its memory may be given back any time between
 * two calls. If there was nothing to do, sleeps until there is, until tcp_wake() or for timeout_ns (0: does not
 * sleep; negative: no limit). Returns how many times bytes were moved or a peer was lost;
 * after 0 and no other, tcp_descriptor() tells when to call again.
 */
unsigned tcp_poll(struct tcp *tcp, int64_t timeout_ns);

/* The same without a look for events, which is a system call: what a lane that is given up still owes its peers. */
unsigned tcp_flush(struct tcp *tcp);

/* Is there a connection that is known to have something to move? */
bool tcp_has_work(const struct tcp *tcp);
/*
 * A caller has waited for its descriptor: the next tcp_poll() looks for events, whichever peer is awaited, or the
 * descriptor would be readable on and on.
 */
void tcp_has_slept(struct tcp *tcp);

/* Ends the sleep of tcp_poll(), the current or the next one. From any thread. */
void tcp_wake(struct tcp *tcp);

/* Becomes readable when tcp_poll() has something to do: for outer loops. Never read from it. */
int tcp_descriptor(const struct tcp *tcp);

/* Over all peers that have a connection, headers included. */
void tcp_totals(const struct tcp *tcp, struct transport_stats *out);

/* False: there is no connection to the peer. */
bool tcp_stats(const struct tcp *tcp, uint32_t peer, struct path_stats *out);

/* ---- as a struct transport_ops ---- */

/* transport_config.options; zeros: as tcp_config has them. */
struct tcp_options {
	uint32_t send_buffer, receive_buffer, unsent_most;
};

extern const struct transport_ops tcp_ops;

#endif
