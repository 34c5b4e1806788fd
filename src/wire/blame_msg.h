/*
 * blame_msg.h - a rank's report to the launcher that another rank has failed it.
 *
 *     0        4        8
 *     accuser  accused
 *
 * Little endian; one datagram each, to the launcher's name (ESP_LAUNCHER) followed by BLAME_SUFFIX. Pure.
 */
#ifndef WIRE_BLAME_MSG_H
#define WIRE_BLAME_MSG_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/bytes.h"

#define BLAME_BYTES 8u
#define BLAME_SUFFIX "-blame"

static inline void blame_encode(uint32_t accuser, uint32_t accused, uint8_t out[BLAME_BYTES])
{
	bytes_put32(out, accuser);
	bytes_put32(out + 4, accused);
}

/* False if it is no such message of a job of this size. */
static inline bool blame_decode(const uint8_t *in, size_t length, uint32_t size, uint32_t *out_accuser,
                                uint32_t *out_accused)
{
	if (length != BLAME_BYTES)
		return false;
	uint32_t accuser = bytes_get32(in), accused = bytes_get32(in + 4);
	if (accuser >= size || accused >= size || accuser == accused)
		return false;
	*out_accuser = accuser;
	*out_accused = accused;
	return true;
}

#endif
