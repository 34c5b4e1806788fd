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
 */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct transport_message {
	bool is_credit;   /* only channel and ack count                                  */
	uint16_t channel;
	uint32_t index;   /* which message of the channel between these two lanes        */
	uint32_t ack;     /* the sender has consumed all messages of the channel below   */
	uint32_t bytes;
	const void *data; /* outgoing, or offered: borrowed until sent() / consumed      */
	void *cookie;     /* outgoing: handed back with sent()                           */
	/*
	 * Offered: not zero once the sender has taken its memory back, because it failed. Looked
	 * at after reading: what was read before it was set is good, anything else is not used.
	 */
	const _Atomic uint32_t *revoked;
};

/* Where the next bytes of a message go. Valid until the next call for any connection of this user. */
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
	 * A message begins. ESP_OK; anything else breaks the connection (the message cannot be:
	 * wrong index, wrong size). room() and arrived() follow unless bytes is 0, then ended(),
	 * once the bytes are known to be those that were sent: until then nothing follows from
	 * them. If they are not, lost() comes instead.
	 */
	enum esp_status (*begin)(void *user, uint32_t peer, const struct transport_message *message);
	struct transport_room (*room)(void *user, uint32_t peer, uint16_t channel);
	void (*arrived)(void *user, uint32_t peer, uint16_t channel, uint32_t bytes);
	void (*ended)(void *user, uint32_t peer, uint16_t channel);

	/*
	 * For transports that share memory: a whole message lies readable at message->data until
	 * consumed() has passed its index. The sender's sent() follows from that.
	 */
	enum esp_status (*offer)(void *user, uint32_t peer, const struct transport_message *message);
	uint32_t (*consumed)(void *user, uint32_t peer, uint16_t channel);
	enum esp_status (*credit)(void *user, uint32_t peer, const struct transport_message *message);

	/* The peer is gone; everything that waits for it ends. */
	void (*lost)(void *user, uint32_t peer, enum esp_status why);

	/*
	 * Has the user failed, by lost() or by itself? Asked after every other call: if so, the
	 * transport takes back what it offered, reads no memory of the user any more, and closes its
	 * connections, from which the peers learn of it.
	 */
	enum esp_status (*failed)(void *user);
};

#endif
