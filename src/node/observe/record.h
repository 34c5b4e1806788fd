/*
 * record.h - what is kept of one call: the flight recorder's ring, statistics and traces are made of these.
 *
 * A plain value. Times are clock_now_ns()'s of this host.
 */
#ifndef NODE_OBSERVE_RECORD_H
#define NODE_OBSERVE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/control_msg.h"

#define RECORD_NONE UINT32_MAX
#define RECORD_NO_CHUNK UINT64_MAX

/* The first ones are those of enum esp_collective. */
enum record_kind {
	RECORD_SEND = 9,
	RECORD_RECEIVE = 10,
	RECORD_GROUP = 11, /* the library's own: groups are made and freed */
	RECORD_KINDS,
};

struct record {
	struct call_note note;   /* sequence 0, no flag: the meeting at the end of esp_init()            */
	uint64_t started_ns, ended_ns; /* ended_ns 0: it is under way                                    */
	uint64_t waited_ns;      /* of that time: nothing could be done but wait for others              */
	uint64_t bytes;          /* as benchmarks count: of the whole vector, or of all blocks           */
	uint64_t since_ns;       /* how long it has been waiting for what follows; 0: not known          */
	uint64_t chunk;          /* RECORD_NO_CHUNK: none                                                */
	uint32_t step;           /* RECORD_NONE: none                                                    */
	uint32_t waits_for;      /* a rank of the job that is, or was, waited for; RECORD_NONE: nobody   */
	uint32_t channel, first; /* the group: these two name it                                         */
	uint32_t members;        /* of the group                                                         */
	uint32_t peer;           /* of messages: the other rank of the job; RECORD_NONE: none, anybody   */
	int32_t status;          /* enum esp_status                                                      */
	uint8_t kind;            /* enum esp_collective or enum record_kind                              */
	const char *plan;        /* static text; "" if there is none                                     */
};

/* "allreduce" ... "send", "group"; never NULL. */
const char *record_kind_name(uint32_t kind);

/* Does every rank of the group wait for every other one in such a call, so that none ends before all have begun? */
bool record_is_meeting(const struct record *record);

/* Bytes that the busiest link has to carry at least, as nccl-tests counts. */
uint64_t record_bus_bytes(const struct record *record);

#endif
