/*
 * frame.h - the head of every message on a data connection.
 *
 * Thirty-two bytes, little endian. Job, epoch and lane are bound to the connection; the frame tells channel and
 * number of the message, its call, and how far the sender has consumed the receiver's messages. A frame without
 * data is a credit. The head has a checksum of its own, so that a damaged length or number is never trusted;
 * the data's checksum is left out (a flag tells) where both ends are on one host. Pure.
 *
 *     0     1      2        4      8    12    16     20          24     25    28          32
 *     type  flags  channel  index  ack  call  bytes  data's crc  shift  zero  head's crc  shift zeros  data ...  zeros
 *
 * A lane's byte stream keeps the alignment of the memory that the kernel copies it from and to, because copies
 * between different alignments are slow. If the offsets within a page differ by 1 to 15 bytes, AMD's Zen 4
 * copies at a fourteenth of the rate (rep movsb); by 16 to 31 bytes, at half; by any other value that is no
 * multiple of FRAME_STEP, at three quarters, for data that is in no cache (build/bench/copy_bench; an Intel
 * Xeon takes four times as long for 1 to 100 bytes, at any alignment). So
 *
 * - zeros pad every message to a multiple of FRAME_STEP, which the head is as well: a single message of 4 bytes
 *   would misalign the rest of the stream;
 * - `shift` zeros before the data give it the alignment that it has in memory: large blocks of malloc() begin 16
 *   bytes past a page on every rank. The shift is the data's offset within a cache line, at which a receiver
 *   stores data that it cannot receive in place.
 */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_BYTES 32u
#define FRAME_STEP 32u
#define FRAME_SHIFTS 64u /* the shift is less: a cache line */

enum frame_type {
	FRAME_DATA = 1,   /* message `index` of `bytes` bytes follows          */
	FRAME_CREDIT = 2, /* ack only; index, call and bytes are zero */
	/* On a connection that replaces another, before anything else (transport/tcp/resume.h): */
	FRAME_SWITCH = 3, /* the sender uses no other connection any more; all else is zero */
	FRAME_COUNT = 4,  /* number of bytes received so far: index, and ack is the upper half; all else is zero */
};

enum frame_flag {
	FRAME_CHECKED = 1, /* data_crc is the CRC-32C of the data; otherwise it is zero */
};

struct frame {
	uint8_t type;
	uint8_t flags;
	uint16_t channel; /* names a stream of a communicator */
	uint32_t index;   /* of this message on the channel, modulo 2^32       */
	uint32_t ack;     /* all messages below this one have been consumed    */
	uint32_t call;    /* digest of the message's call */
	uint32_t bytes;
	uint32_t data_crc;
	uint8_t shift;    /* zeros before the data; 0 without data */
};

/* The number of zeros after so many bytes of shift and data. */
static inline uint32_t frame_filling(uint32_t bytes)
{
	return -bytes % FRAME_STEP;
}

void frame_encode(const struct frame *frame, uint8_t out[FRAME_BYTES]);

/* The length that a head claims: not to be trusted before it is decoded. */
uint32_t frame_claims(const uint8_t in[FRAME_BYTES]);

/* False if the bytes are no frame, or damaged; *out is then untouched. */
bool frame_decode(const uint8_t in[FRAME_BYTES], struct frame *out);

#endif
