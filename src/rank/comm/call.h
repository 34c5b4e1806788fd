/*
 * call.h - one collective call as its caller describes it: checked, described, compared.
 *
 * Pure. The properties that must be alike on all ranks are the call's note (wire/control_msg.h); its digest goes with
 * every message, and ranks that find two digests for one call show each other their notes.
 */
#ifndef RANK_COMM_CALL_H
#define RANK_COMM_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"
#include "rank/failure.h"
#include "wire/control_msg.h"

struct memory_part {
	uint8_t *data;
	uint64_t bytes;
};

struct call {
	enum plan_collective collective;
	enum esp_type type;
	enum esp_op op;
	enum esp_numerics numerics; /* once checked: fixed point, or 0 for the ordinary plan */
	bool keyed;
	bool makes_group;          /* the library's own, while it makes a group            */
	double factor;
	uint32_t root;
	uint64_t count;            /* elements of one block                                */
	const uint64_t *counts;    /* elements of each block, borrowed; NULL: all `count`  */
	const void *in;
	void *out;
	const struct memory_part *in_parts, *out_parts; /* borrowed; NULL: in, out         */
	uint32_t in_part_count, out_part_count;
	const struct planner *planner; /* NULL: to be chosen                               */
	uint64_t key;

	/* Worked out by call_check(). */
	uint32_t element_bytes;
	uint64_t block_bytes;      /* of one equal block                                   */
	uint64_t in_bytes, out_bytes; /* of this rank's buffers; 0 where they are not looked at */
	bool in_place;             /* in and out share memory                              */
};

/*
 * Checks everything that one rank can check by itself, and completes the struct. rank and size: of
 * the group. ESP_EINVAL, ESP_EUNSUPPORTED (op is not defined for type), ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status call_check(struct call *call, uint32_t rank, uint32_t size, struct failure *failure);

/* Of a checked call: is it made in fixed point (stages.h)? */
static inline bool call_is_fixed(const struct call *call)
{
	return call->numerics == ESP_NUMERICS_FIXED || call->numerics == ESP_NUMERICS_FIXED16;
}

void call_note(const struct call *call, uint32_t size, uint64_t sequence, struct call_note *out);

/* "allreduce" */
const char *call_operation(const struct call_note *note);

/* "allreduce of 1024 f32, sum" */
#define CALL_TEXT 128u
const char *call_describe(const struct call_note *note, char text[CALL_TEXT]);

#endif
