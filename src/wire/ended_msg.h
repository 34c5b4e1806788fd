/*
 * ended_msg.h - the launcher's answer to joining ranks: which ranks have ended.
 *
 *     0       2       4       6
 *     rank 0  rank 1  rank 2  ...
 *
 * Little endian: 0 while a process of the rank runs, otherwise 1 and its status. All ranks of the job, then the
 * end of the stream: 128 KiB at most, which a socket takes at once. Pure.
 */
#ifndef WIRE_ENDED_MSG_H
#define WIRE_ENDED_MSG_H

#include <stddef.h>

#include "wire/bytes.h"

#define ENDED_BYTES 2u /* per rank */
#define ENDED_NOT (-1) /* in place of a status: not ended */

/* status: as a shell has it in $?, 128 and the number of the signal for a killed process; or ENDED_NOT. */
static inline void ended_put(uint8_t *answer, uint32_t rank, int status)
{
	bytes_put16(answer + (size_t)rank * ENDED_BYTES, (uint16_t)(status + 1));
}

static inline int ended_get(const uint8_t *answer, uint32_t rank)
{
	return bytes_get16(answer + (size_t)rank * ENDED_BYTES) - 1;
}

#endif
