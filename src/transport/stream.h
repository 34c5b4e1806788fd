/*
 * stream.h - messages over a stream of bytes: frames in, frames out, cut anywhere.
 *
 * Shared by the transports that move bytes in order (loop, TCP). Logic without
 * I/O: the caller moves bytes between the stream and the places that these functions
 * name. One reader and one writer per connection; touched by the lane's thread only.
 */
#ifndef TRANSPORT_STREAM_H
#define TRANSPORT_STREAM_H

#include "transport/transport.h"
#include "wire/frame.h"

/* ---- incoming ---- */

struct stream_reader {
	uint8_t header[FRAME_BYTES];
	uint32_t header_have;
	uint32_t body_left;
	struct frame frame; /* whose body is coming                  */
	uint32_t crc;       /* of what has come of it                */
	const void *at;     /* where the bytes that come next are put */
};

/* Where the next bytes of the stream go; never empty. */
struct transport_room stream_room(struct stream_reader *reader, const struct transport_user *user, void *context,
                                  uint32_t peer);
/* That many bytes were put there. Anything but ESP_OK: the stream is not to be read further. */
ESP_CHECKED enum esp_status stream_arrived(struct stream_reader *reader, const struct transport_user *user,
                                           void *context, uint32_t peer, uint32_t bytes);

/* ---- outgoing ---- */

struct stream_writer {
	bool checked; /* data carries a checksum: set once, when the connection is made */
	uint8_t header[FRAME_BYTES];
	struct transport_message message;
	uint32_t done; /* bytes of header and data that have left */
	bool busy;     /* a message is under way                  */
};

/* The bytes that are next on the wire, at most two stretches; 0: nothing to send. */
struct stream_bytes {
	const void *at; /* NULL for data without memory behind it */
	uint32_t bytes;
};
unsigned stream_pending(struct stream_writer *writer, const struct transport_user *user, void *context, uint32_t peer,
                        struct stream_bytes out[2]);
/* That many of them have left. True: the message is complete (its `sent` is the caller's to report). */
bool stream_left(struct stream_writer *writer, uint32_t bytes);

#endif
