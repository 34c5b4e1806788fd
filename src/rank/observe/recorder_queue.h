/*
 * recorder_queue.h - small calls on their way into the recorder: what their hot path writes. Private to src/rank.
 *
 * A call through a board takes a quarter of a microsecond, so all that is done for each is to read the clock and to
 * leave these few words; they are worked into the ring, the statistics and the trace some dozen at a time, by
 * whoever made the calls or by whoever wants to know. One thread at a time leaves calls: who holds the group's board. Calls are
 * taken out under the recorder's lock.
 */
#ifndef RANK_OBSERVE_RECORDER_QUEUE_H
#define RANK_OBSERVE_RECORDER_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/control_msg.h"

#define RECORDER_QUEUE 128u

struct recorder_entry {
	uint64_t started, ended; /* ticks of the recorder */
	uint64_t bytes;
	struct call_note note;
	uint8_t kind; /* enum record_kind         */
	uint8_t rounds;
	bool waited;
};

struct recorder_queue {
	_Atomic uint64_t added;           /* written by who leaves calls; release: what is below it is whole */
	_Alignas(64) _Atomic uint64_t taken; /* written under the recorder's lock                             */
	struct recorder_entry entries[RECORDER_QUEUE];
};

#endif
