/*
 * blame_msg.h - which other rank a rank says has failed it, as whoever started the two is told.
 *
 *     0    4     8
 *     who  whom
 *
 * Little endian; one datagram each. It goes to the launcher's name (ESP_LAUNCHER) with BLAME_SUFFIX behind it.
 */
#ifndef WIRE_BLAME_MSG_H
#define WIRE_BLAME_MSG_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/bytes.h"

#define BLAME_BYTES 8u
#define BLAME_SUFFIX "-blame"

static inline void blame_encode(uint32_t who, uint32_t whom, uint8_t out[BLAME_BYTES])
{
	bytes_put32(out, who);
	bytes_put32(out + 4, whom);
}

/* False if it is no such message in a job of this size. */
static inline bool blame_decode(const uint8_t *in, size_t length, uint32_t size, uint32_t *out_who, uint32_t *out_whom)
{
	if (length != BLAME_BYTES)
		return false;
	uint32_t who = bytes_get32(in), whom = bytes_get32(in + 4);
	if (who >= size || whom >= size || who == whom)
		return false;
	*out_who = who;
	*out_whom = whom;
	return true;
}

#endif
