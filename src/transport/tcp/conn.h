/*
 * conn.h - one connection: bytes between a socket and the lane's user. Private to tcp.
 *
 * The socket is non-blocking and watched for edges (see tcp.c), so a connection remembers
 * whether it can be read and written: a flag is cleared when a system call moved less than
 * was asked for, and set by the next edge.
 */
#ifndef TRANSPORT_TCP_CONN_H
#define TRANSPORT_TCP_CONN_H

#include "transport/poller.h"
#include "transport/stream.h"
#include "transport/tcp/keep.h"

/*
 * Messages that one system call sends, and bytes after which no further message joins: so
 * many that small messages share the cost of the call, not tuned further. The last one is not
 * cut for that, as its receiver can do nothing without its end; but what is very large is.
 */
#define CONN_GATHER 32u
#define CONN_SEND_BYTES (256u << 10)
#define CONN_SEND_MOST (1u << 20) /* of one message */

/*
 * Bytes received beyond the body under way, so that small messages, and the head of the next large one, need no call of
 * their own. They are copied once more, so after a large message it is just the head (bench/tcp_bench: a stream of 1
 * KiB costs a quarter less than with 4 KiB always; large ones do not notice).
 */
#define CONN_AHEAD 16384u
#define CONN_AHEAD_HEAD 256u
#define CONN_LARGE 4096u /* bytes of a message */
#define CONN_RECEIVE_BYTES (512u << 10)

/* One that takes the place of others: see resume.h. */
enum conn_phase {
	CONN_FLOWS,
	CONN_SWITCHES, /* the other end may still send on the old ones        */
	CONN_COUNTS,   /* we know what came on them, and wait to hear the same */
};

struct tcp;

struct conn {
	struct poller_subject subject;
	struct tcp *owner;
	int fd;
	uint32_t number; /* of the peer */
	const struct transport_user *user;
	void *context;

	bool readable, writable;
	bool wants;   /* user->next() has not been asked to the end                         */
	bool ending;  /* the end of the stream is near: read until it is reached            */
	bool mute;    /* writing failed: read what has arrived, then the connection is lost */
	bool listed;  /* among those that have work                                         */
	bool closed;
	bool retired; /* another one has taken its place: it is read to the end once, and closed */
	bool severed; /* the network says that there is no way; another one may take its place   */
	bool reset;   /* severed, as it was reset: the way is there                              */
	struct conn *next_listed;
	struct conn *next; /* of the same peer, or to be freed */

	uint64_t sent_bytes, received_bytes, sent_messages, send_calls, receive_calls;

	/* Messages pulled and not yet left: a ring, oldest first. */
	uint32_t writer_first, writer_count;
	struct stream_writer writers[CONN_GATHER];

	struct stream_reader reader;
	uint32_t ahead_have;
	_Alignas(TRANSPORT_ALIGN) uint8_t ahead[CONN_AHEAD];

	/* Sent bytes, kept for the case that another connection takes this one's place. */
	bool keeps;
	struct keep keep;
	/* how much of the stream this socket was given: the end of what is kept, or it is being sent again */
	uint64_t sent_to;

	uint8_t phase;         /* enum conn_phase */
	bool is_resuming;      /* until all that was kept has been sent again */
	uint32_t greeting_have, greeting_at, greeting_bytes;
	uint8_t greeting_in[FRAME_BYTES], greeting_out[2 * FRAME_BYTES];
};

bool tcp_conn_has_work(const struct conn *conn);
bool tcp_conn_wants_to_write(const struct conn *conn);

/*
 * One system call each way, and what follows from it. ESP_OK, ESP_PENDING (nothing was
 * moved), or why the connection is lost.
 */
ESP_CHECKED enum esp_status tcp_conn_write(struct conn *conn);
ESP_CHECKED enum esp_status tcp_conn_read(struct conn *conn);

/*
 * Neither the user's memory of this channel is touched any more nor the user asked about it.
 * False: no memory to complete the message under way, so the connection cannot be kept.
 */
ESP_CHECKED bool tcp_conn_forget(struct conn *conn, uint16_t channel);

/*
 * An error of the network that another connection may get around: notes it. False: it is of another kind, or nothing is
 * kept.
 */
bool tcp_conn_severed(struct conn *conn, int error);

/* Frees what it holds; the descriptor is the caller's. */
void tcp_conn_fini(struct conn *conn);

/* Sets up a socket that is to be a connection: 0, or an errno. */
int tcp_conn_prepare(int fd, uint32_t send_buffer, uint32_t receive_buffer, uint32_t unsent_most);

#endif
