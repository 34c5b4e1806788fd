/*
 * ended_msg.h - which ranks have ended, as whoever started them tells those that join and ask.
 *
 *     0     4       8
 *     rank  status
 *
 * Records one behind the other, at most ENDED_MAX, then the end of the stream. All numbers are little endian.
 */
#ifndef WIRE_ENDED_MSG_H
#define WIRE_ENDED_MSG_H

#include "wire/bytes.h"

#define ENDED_BYTES 8u
#define ENDED_MAX 64u

struct ended {
	uint32_t rank;
	int32_t status; /* as a shell has it in $?: 128 and the number of the signal for one that was killed */
};

static inline void ended_encode(const struct ended *ended, uint8_t out[ENDED_BYTES])
{
	bytes_put32(out, ended->rank);
	bytes_put32(out + 4, (uint32_t)ended->status);
}

static inline struct ended ended_decode(const uint8_t in[ENDED_BYTES])
{
	return (struct ended){bytes_get32(in), (int32_t)bytes_get32(in + 4)};
}

#endif
