/*
 * crc32c.h - the checksum of messages: CRC-32C (Castagnoli), as in iSCSI and SCTP.
 *
 * Pure; any thread. Uses the instruction of x86-64 (SSE 4.2) and arm64 on three blocks at a time, because one
 * instruction alone waits for its own result; tables otherwise.
 */
#ifndef WIRE_CRC32C_H
#define WIRE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of more data behind data with checksum crc; begin with 0. */
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);

/* The same by tables, for tests and comparison. */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t bytes);

#endif
