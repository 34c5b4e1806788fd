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
	/* the filling behind the message before, and the head; then the zeros before the body */
	uint8_t header[FRAME_STEP - 1 + FRAME_BYTES];
	uint32_t filling;     /* how much of it is that */
	uint32_t header_have;
	uint32_t shift_left; /* zeros before the body     */
	uint32_t body_left;
	struct frame frame; /* whose body is coming                   */
	uint32_t crc;       /* of what has come of it                 */
	const void *at;     /* where the bytes that come next are put */
	bool dropping;      /* the body is not wanted */
	bool unseen;        /* some of it had no memory: its checksum is not known */
};

/* Where the next bytes of the stream go; never empty. Without memory if the bytes are not wanted. */
struct transport_room stream_room(struct stream_reader *reader, const struct transport_user *user, void *context,
                                  uint32_t peer);
/* That many bytes were put there. Anything but ESP_OK: the stream is not to be read further. */
ESP_CHECKED enum esp_status stream_arrived(struct stream_reader *reader, const struct transport_user *user,
                                           void *context, uint32_t peer, uint32_t bytes);
/*
 * The same for all that lies here. A message that does so whole, with what fills it up, is taken at once: at should
 * be a multiple of TRANSPORT_ALIGN.
 */
ESP_CHECKED enum esp_status stream_feed(struct stream_reader *reader, const struct transport_user *user, void *context,
                                        uint32_t peer, const uint8_t *at, uint32_t bytes);
/* Have all messages that have begun come in full? The filling behind the last one does not count. */
bool stream_is_between(const struct stream_reader *reader);
/* The user is not asked about a message of this channel any more if one is under way: the rest of it is dropped. */
void stream_reader_forget(struct stream_reader *reader, uint16_t channel);

/* ---- outgoing ---- */

struct stream_writer {
	bool checked; /* data carries a checksum: set once, when the connection is made */
	uint8_t header[FRAME_BYTES + FRAME_SHIFTS - 1]; /* with the zeros before the data */
	uint32_t header_bytes;
	struct transport_message message;
	uint32_t done;    /* bytes of header, data and filling that have left         */
	bool busy;        /* a message is under way                                   */
	bool forgotten;   /* its channel is: it is completed without sent() */
	uint8_t *copy;    /* of the data from copy_from on, when it was forgotten     */
	uint32_t copy_from;
};

/* The bytes that are next on the wire, as so many spans; 0: nothing to send. */
#define STREAM_SPANS 3u
struct stream_bytes {
	const void *at; /* NULL for data without memory behind it */
	uint32_t bytes;
};
unsigned stream_pending(struct stream_writer *writer, const struct transport_user *user, void *context, uint32_t peer,
                        struct stream_bytes out[STREAM_SPANS]);

/* The same of a message none of which has left, put together at out, if there is room for all of it. */
enum stream_whole {
	STREAM_NONE,   /* nothing to send                                  */
	STREAM_WHOLE,  /* *out_bytes of it                                 */
	STREAM_PARTED, /* it is of another kind, and goes the usual way    */
};
enum stream_whole stream_pending_whole(struct stream_writer *writer, const struct transport_user *user, void *context,
                                       uint32_t peer, uint8_t *out, uint32_t room, uint32_t *out_bytes);

enum stream_progress {
	STREAM_GOES_ON, /* the message has not left in full          */
	STREAM_SENT,    /* it has: its sent() is the caller's to call */
	STREAM_GONE,    /* it has, and was forgotten: without sent() */
};
/* That many of them have left. */
enum stream_progress stream_left(struct stream_writer *writer, uint32_t bytes);

/*
 * The memory of the message under way is not read any more if it is of this channel: it is
 * dropped if none of it has left, and otherwise completed from a copy that is made here.
 * False: no memory for the copy, so the connection cannot be kept.
 */
ESP_CHECKED bool stream_writer_forget(struct stream_writer *writer, uint16_t channel);
void stream_writer_fini(struct stream_writer *writer);

#endif
