/*
 * ended_msg.h - which ranks have ended, as whoever started them tells those that join and ask.
 *
 *     0       2       4       6
 *     rank 0  rank 1  rank 2  ...
 *
 * Little endian: 0 while something of the rank is left, otherwise 1 and its status. All ranks that were
 * started, then the end of the stream: 128 KiB at most, which a socket takes at once.
 */
#ifndef WIRE_ENDED_MSG_H
#define WIRE_ENDED_MSG_H

#include <stddef.h>

#include "wire/bytes.h"

#define ENDED_BYTES 2u /* for each rank */
#define ENDED_NOT (-1) /* in place of a status: it has not ended */

/* status: as a shell has it in $?, 128 and the number of the signal for one that was killed; or ENDED_NOT. */
static inline void ended_put(uint8_t *answer, uint32_t rank, int status)
{
	bytes_put16(answer + (size_t)rank * ENDED_BYTES, (uint16_t)(status + 1));
}

static inline int ended_get(const uint8_t *answer, uint32_t rank)
{
	return bytes_get16(answer + (size_t)rank * ENDED_BYTES) - 1;
}

#endif
