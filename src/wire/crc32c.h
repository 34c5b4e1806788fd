/*
 * crc32c.h - the checksum of what crosses a network: CRC-32C (Castagnoli), as in iSCSI and SCTP.
 *
 * Pure; safe from any thread. Uses the instruction that x86-64 (SSE 4.2) and arm64 have for
 * it, three stretches at a time, because one alone waits for itself; tables otherwise.
 */
#ifndef WIRE_CRC32C_H
#define WIRE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of data behind what crc is the checksum of; begin with 0. */
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);

/* The same by tables, for tests and comparison. */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t bytes);

#endif
