/*
 * frame.h - what stands before every message on a connection between two lanes.
 *
 * Sixteen bytes, little endian. Job, epoch and lane were bound to the connection when it
 * was made; the frame says which message of which channel follows, and how far the
 * sender has consumed what it was sent. A frame without data is a credit.
 *
 *     0      1      2        4        8      12       16
 *     type   flags  channel  index    ack    bytes    data ...
 */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_BYTES 16u

enum frame_type {
	FRAME_DATA = 1,   /* message `index` of `bytes` bytes follows          */
	FRAME_CREDIT = 2, /* only ack counts; index and bytes are zero         */
};

struct frame {
	uint8_t type;
	uint8_t flags;    /* none defined: zero */
	uint16_t channel; /* a stream of a group */
	uint32_t index;   /* of this message on the channel, modulo 2^32       */
	uint32_t ack;     /* all messages below this one have been consumed    */
	uint32_t bytes;
};

void frame_encode(const struct frame *frame, uint8_t out[FRAME_BYTES]);

/* False if the bytes are not a frame; *out is then untouched. */
bool frame_decode(const uint8_t in[FRAME_BYTES], struct frame *out);

#endif
