/*
 * transport.h - the line between what is to be moved and what moves it.
 *
 * A transport carries messages between the lanes of nodes, in order on each connection. It
 * decides nothing: it *pulls*. When a connection can take bytes it asks the lane's user
 * what is next; when bytes come in it asks where they go. The user (engine/lane.h)
 * implements struct transport_user; a transport calls it from the one thread that owns the
 * lane, and never from two at a time. No call blocks.
 *
 * Order of calls on a connection from peer:
 *     begin(message)  room() arrived(n) room() arrived(n) ... ended()
 *     offer(message)                                            where data lies in memory
 *     credit(ack)                                               a frame without data
 *
 * A channel is a stream of calls of one group (engine/lane.h); channels fail one by one. A
 * transport therefore has a function forget(channel): when it returns, no memory of that
 * channel's messages is touched any more, neither sent() nor consumed() is called for them,
 * and peers that still read memory offered on it find it revoked. A message that has left in
 * part is completed from a private copy, so that the connection lives on for the others.
 */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define TRANSPORT_SHIFTS 64u /* a line of a cache */
#define TRANSPORT_ALIGN 8u /* of any element */
#define TRANSPORT_SHIFTED_FROM 4096u /* bytes: less is copied at once, whatever its place */

/*
 * Where within a line data that is copied from here should come to lie: where it lies now, as processors copy data that
 * is out of step more slowly, some of them much more (wire/frame.h). Memory of malloc() that is large lies 16 bytes
 * past a line, on all ranks alike.
 */
static inline uint8_t transport_shift(const void *data, uint32_t bytes)
{
	return bytes < TRANSPORT_SHIFTED_FROM ? 0 : (uint8_t)((uintptr_t)data % TRANSPORT_SHIFTS);
}

struct transport_message {
	bool is_credit;   /* only channel and ack count                                  */
	uint16_t channel;
	uint32_t index;   /* which message of the channel between these two lanes        */
	uint32_t ack;     /* the sender has consumed all messages of the channel below   */
	uint32_t call;    /* digest of the call that it belongs to: the same on both ends, or the calls differ */
	uint32_t bytes;
	uint8_t shift;    /* begun: where within a line the data is best put, if it is not where it belongs */
	const void *data; /* outgoing, or offered: borrowed until sent() / consumed      */
	void *cookie;     /* outgoing: handed back with sent()                           */
	/*
	 * Outgoing: messages of one channel with the same number carry the same bytes, to several
	 * peers: a transport that copies need copy only once. Numbers are never used again. 0: unknown.
	 */
	uint64_t content;
	/*
	 * Offered: not zero once the sender has taken its memory back, because it failed. Looked
	 * at after reading: what was read before it was set is good, anything else is not used.
	 */
	const _Atomic uint32_t *revoked;
	/*
	 * Where the sender wants the answer to this message: as many bytes, which the receiver of the message may store
	 * there by itself, before it has consumed it. NULL: nowhere; transports drop it where memory is not shared both
	 * ways. Outgoing: borrowed until sent(). Offered: storing is odd from before revoked is read until all is stored,
	 * so that a rank that takes its memory back knows which stores it has to wait for. All of these are sequentially
	 * consistent.
	 */
	void *reply;
	_Atomic uint32_t *storing;
	/* There is nothing at data: the bytes were stored at the receiver's reply. */
	bool is_stored;
};

/* Where the next bytes of a message go. Valid until the next call for any connection of this lane. */
struct transport_room {
	void *at; /* NULL: count the bytes, there is no memory behind them */
	uint32_t bytes;
};

struct transport_user {
	/* The next message for peer; false: nothing now. ready() names the peer when that changes. */
	bool (*next)(void *user, uint32_t peer, struct transport_message *out);
	/* A peer for which there is something to send, each change told once; UINT32_MAX: none. */
	uint32_t (*ready)(void *user);
	/* The bytes of a message that next() gave have left: its memory may be written again. */
	void (*sent)(void *user, uint32_t peer, uint16_t channel, void *cookie);

	/*
	 * The peer whose message all that is under way waits for; UINT32_MAX: none in particular. A hint: a transport for
	 * which it is a system call to find out which peer has sent, and another to read it, may try to read first. NULL:
	 * never.
	 */
	uint32_t (*awaits)(void *user);

	/*
	 * A message begins. ESP_OK; ESP_PENDING: it is not wanted (its channel has failed or is closed), its bytes are
	 * dropped and none of the calls below follow; anything else breaks the connection (the message cannot be: wrong
	 * index, wrong size of a frame). A message of another call fails the channel and is dropped; the connection is
	 * innocent. room() and arrived() follow unless bytes is 0, then ended(), once the bytes are known to be those that
	 * were sent: until then nothing follows from them. If they are not, lost() comes instead.
	 */
	enum esp_status (*begin)(void *user, uint32_t peer, const struct transport_message *message);
	struct transport_room (*room)(void *user, uint32_t peer, uint16_t channel);
	void (*arrived)(void *user, uint32_t peer, uint16_t channel, uint32_t bytes);
	void (*ended)(void *user, uint32_t peer, uint16_t channel);

	/*
	 * The same in one call, of a message all of which is there and is known to be what was sent: it lies at
	 * message->data during the call, and begins where any element may. NULL: never.
	 */
	enum esp_status (*take)(void *user, uint32_t peer, const struct transport_message *message);

	/*
	 * For transports that share memory: a whole message lies readable at message->data until
	 * consumed() has passed its index. The sender's sent() follows from that. ESP_PENDING as above:
	 * dropped; it counts as consumed.
	 */
	enum esp_status (*offer)(void *user, uint32_t peer, const struct transport_message *message);
	uint32_t (*consumed)(void *user, uint32_t peer, uint16_t channel);
	enum esp_status (*credit)(void *user, uint32_t peer, const struct transport_message *message);

	/* The peer is gone; every channel that it is a member of fails. */
	void (*lost)(void *user, uint32_t peer, enum esp_status why);

	/*
	 * Has the user failed as a whole? Asked in every poll, and after what was sent: if so, the transport takes
	 * back what it offered, reads no memory of the user any more, and closes its connections,
	 * from which the peers learn of it. Single channels fail without this: see forget() above.
	 */
	enum esp_status (*failed)(void *user);
};

/* ---- the transport's half ---- */

/*
 * Properties of a peer for adopt(); which of them count depends on the transport. Descriptors are taken, also if it
 * fails.
 */
struct endpoint {
	int fd;             /* tcp: a connected and proved socket; shm: what wakes the peer's lane         */
	bool checked;       /* tcp: it crosses a network: data that is sent on it carries checksums        */
	const void *memory; /* shm: the struct segment_view of the peer, borrowed until the transport is closed */
};

struct poller;

struct transport_config {
	uint32_t peers;          /* they are numbered from 0                                                          */
	/* of sockets, shared with other transports of the same thread, borrowed; NULL: one of its own */
	struct poller *poller;
	bool resumes;            /* connections can be replaced; the same at both ends                                */
	bool is_crowded;         /* threads share cores: a peer that is waited for may not be running                 */
	/*
	 * There is something for a peer without a connection: called once, until adopt() or drop() answers, within the call
	 * or later. NULL: peers are always adopted beforehand.
	 */
	void (*dial)(void *context, uint32_t peer);
	void *dial_context;
	const void *options;     /* the transport's own: struct tcp_options, struct shm_options; NULL: its defaults    */
};

/* Traffic of a transport, over all peers. */
struct transport_stats {
	uint64_t messages_sent;
	uint64_t sent_bytes, received_bytes;
	uint64_t shared_bytes;  /* of those sent: read by the peer where they lay */
	uint64_t network_bytes; /* of those sent: through sockets                 */
};

enum transport_caps {
	TRANSPORT_OFFERS = 1,   /* shares memory: messages are offered where they lie */
	TRANSPORT_STORES = 2,   /* peers store answers into each other's memory       */
	TRANSPORT_REPLACES = 4, /* connections can be replaced (config.resumes)       */
	TRANSPORT_PATHS = 8,    /* path() knows the network below a connection        */
};

struct path_stats;

/*
 * A transport, as its user drives it. One thread at a time calls these, but for wake(); no call blocks and no lock is
 * held. docs of what each transport makes of them stand in transport/tcp/tcp.h and transport/shm/shm.h.
 */
struct transport_ops {
	const char *name; /* "tcp", "shm" */
	uint32_t caps;    /* enum transport_caps */
	/* Borrows user and context until close(). ESP_ENOMEM, ESP_ELIMIT, ESP_EINVAL. */
	enum esp_status (*open)(const struct transport_config *config, const struct transport_user *user, void *context,
	                        void **out, struct error *err);
	void (*close)(void *t); /* NULL is fine */
	/*
	 * A connection to a peer; replaces: in place of the one that there is (TRANSPORT_REPLACES). ESP_EPEER: the peer is
	 * lost. ESP_EINVAL, ESP_ENOMEM, ESP_ELIMIT.
	 */
	enum esp_status (*adopt)(void *t, uint32_t peer, const struct endpoint *endpoint, bool replaces, struct error *err);
	/* The peer is gone: lost() is called with the status, once. */
	void (*drop)(void *t, uint32_t peer, enum esp_status why);
	/*
	 * A lost peer is back: adopt() takes it again. Both ends do this before either is given the other's new endpoint.
	 * ESP_EUNSUPPORTED: this transport cannot. Nothing if the peer is not lost.
	 */
	enum esp_status (*readmit)(void *t, uint32_t peer, struct error *err);
	/* The channel has failed or is closed, see above. */
	void (*forget)(void *t, uint16_t channel);
	/* Moves what can be moved, a bounded amount per peer. Returns how much; 0: nothing. */
	unsigned (*poll)(void *t);
	/* The same without asking the kernel for events: what a lane that is given up still owes its peers. */
	unsigned (*flush)(void *t);
	/* Before the thread sleeps on fd(); false: something came meanwhile. After it, or instead of it: disarm(). */
	bool (*arm)(void *t);
	void (*disarm)(void *t);
	int (*fd)(const void *t); /* becomes readable when poll() has something to do, while armed. Never read from it */
	void (*wake)(void *t);    /* any thread: ends the sleep, the current or the next one */
	/* Is there something that peers wait for beside the user's messages: bytes that a replaced connection owes? */
	bool (*owes)(const void *t);
	void (*stats)(const void *t, struct transport_stats *out);
	/* Of the connection that messages to a peer leave on; false: there is none, or the transport has no such thing. */
	bool (*path)(const void *t, uint32_t peer, struct path_stats *out);
};

#endif
