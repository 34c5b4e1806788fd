/*
 * record.h - the record of one call; the flight recorder, statistics and traces consist of records. A plain value.
 * Pure. Times are those of clock_now_ns() on this host.
 */
#ifndef NODE_OBSERVE_RECORD_H
#define NODE_OBSERVE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/control_msg.h"

#define RECORD_NONE UINT32_MAX
#define RECORD_NO_CHUNK UINT64_MAX

/* Values below RECORD_SEND are those of enum esp_collective. */
enum record_kind {
	RECORD_SEND = 9,
	RECORD_RECEIVE = 10,
	RECORD_GROUP = 11, /* internal: makes or frees communicators */
	RECORD_KINDS,
};

struct record {
	struct call_note note;   /* sequence 0, no flag: the barrier at the end of esp_init() */
	uint64_t started_ns, ended_ns; /* ended_ns 0: the call is under way */
	uint64_t waited_ns;      /* part of that time in which the call could only wait for peers */
	uint64_t bytes;          /* as benchmarks count: of the whole vector, or of all blocks */
	uint64_t since_ns;       /* how long the call has been waiting for what the next fields name; 0: not known */
	uint64_t chunk;          /* RECORD_NO_CHUNK: none */
	uint32_t step;           /* RECORD_NONE: none */
	uint32_t waits_for;      /* rank of the job that the call waits for, or waited for; RECORD_NONE: no rank */
	uint32_t channel, first; /* identify the communicator */
	uint32_t members;        /* of the communicator */
	uint32_t peer;           /* point-to-point: the rank at the other end; RECORD_NONE: none, or any source */
	int32_t status;          /* enum esp_status */
	uint8_t kind;            /* enum esp_collective or enum record_kind */
	const char *plan;        /* static text; "" if there is none */
};

/* "allreduce" ... "send", "group"; never NULL. */
const char *record_kind_name(uint32_t kind);

/*
 * True if every rank of the communicator waits for every other one in such a call, so that none ends before all have
 * begun.
 */
bool record_is_meeting(const struct record *record);

/* Bytes that the busiest link carries at least, by the definition of nccl-tests. */
uint64_t record_bus_bytes(const struct record *record);

#endif
