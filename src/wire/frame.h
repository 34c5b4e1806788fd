/*
 * frame.h - what stands before every message on a connection between two lanes.
 *
 * Thirty-two bytes, little endian. Job, epoch and lane were bound to the connection when it
 * was made; the frame says which message of which channel follows, of what call it is, and how
 * far the sender has consumed what it was sent. A frame without data is a credit. The head has a checksum of
 * its own, so that no length or number is believed that was not sent; the checksum of the
 * data is left out (a flag says so) where both ends are on one host.
 *
 *     0     1      2        4      8    12    16     20          24     25    28          32
 *     type  flags  channel  index  ack  call  bytes  data's crc  shift  zero  head's crc  shift zeros  data ...  zeros
 *
 * All that a lane sends stays in step with the pages that a kernel copies it to: where the places within a page of what is copied and of where it
 * goes to differ by 1 to 15 bytes, AMD's Zen 4 copies a
 * fourteenth as fast (rep movsb), by 16 to 31 bytes half as fast, and by anything else that is no multiple of FRAME_STEP three quarters as fast, if it is
 * not in a cache (build/bench/copy_bench; an Intel Xeon takes four times as long for 1 to 100 bytes, whatever they are a multiple of). So
 *
 * - zeros fill up every message to such a multiple, as the head is one. A single
 *   message of 4 bytes would put all that the lane sends after it out of step.
 * - zeros before the data move it to where it stands in memory, within such a step: large blocks of malloc() lie 16 bytes past a page, everybody's
 *   alike. They are as many as its place within a line of a cache, at which a receiver puts what it does not receive where it belongs.
 */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_BYTES 32u
#define FRAME_STEP 32u
#define FRAME_SHIFTS 64u /* the shift is less: a line of a cache */

enum frame_type {
	FRAME_DATA = 1,   /* message `index` of `bytes` bytes follows          */
	FRAME_CREDIT = 2, /* only ack counts; index, call and bytes are zero   */
	/* On a connection that takes the place of another, before anything else (transport/tcp/resume.h). */
	FRAME_SWITCH = 3, /* I send on no other any more; all else is zero     */
	FRAME_COUNT = 4,  /* so many bytes of yours have come: index, and ack the upper half; all else is zero */
};

enum frame_flag {
	FRAME_CHECKED = 1, /* data_crc is the CRC-32C of the data; otherwise it is zero */
};

struct frame {
	uint8_t type;
	uint8_t flags;
	uint16_t channel; /* a stream of a group */
	uint32_t index;   /* of this message on the channel, modulo 2^32       */
	uint32_t ack;     /* all messages below this one have been consumed    */
	uint32_t call;    /* digest of the call that it belongs to             */
	uint32_t bytes;
	uint32_t data_crc;
	uint8_t shift;    /* how many zeros stand before the data; 0 without data */
};

/* How many zeros follow so many bytes, those before the data included. */
static inline uint32_t frame_filling(uint32_t bytes)
{
	return -bytes % FRAME_STEP;
}

void frame_encode(const struct frame *frame, uint8_t out[FRAME_BYTES]);

/* How many bytes of data a head speaks of: not to be believed before it is decoded. */
uint32_t frame_claims(const uint8_t in[FRAME_BYTES]);

/* False if the bytes are not a frame, or not as they were sent; *out is then untouched. */
bool frame_decode(const uint8_t in[FRAME_BYTES], struct frame *out);

#endif
