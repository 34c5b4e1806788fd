/* fnv.h - FNV-1a, 64 bits: tells apart data that there is no reason to forge. */
#ifndef BASE_FNV_H
#define BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_START UINT64_C(0xcbf29ce484222325)

/* The hash of what came before, beginning with FNV_START, and of these bytes. */
static inline uint64_t fnv_add(uint64_t hash, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

#endif
