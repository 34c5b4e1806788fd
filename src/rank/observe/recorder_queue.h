/*
 * recorder_queue.h - small calls on their way into the recorder, as their hot path writes them. Private to src/rank.
 *
 * A call on the small path takes a quarter of a microsecond, so for each the hot path only reads the clock and writes
 * these few words; they are moved into the ring, the statistics and the trace some dozen at a time, by the thread that
 * made the calls or by a thread that reads the recorder. One thread at a time adds calls: the one that holds the
 * communicator's small path. Calls are taken out under the recorder's lock.
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
	uint8_t kind; /* enum record_kind */
	uint8_t rounds;
	bool waited;
};

struct recorder_queue {
	_Atomic uint64_t added;           /* written by the thread that adds; release: entries below it are complete */
	_Alignas(64) _Atomic uint64_t taken; /* written under the recorder's lock */
	struct recorder_entry entries[RECORDER_QUEUE];
};

#endif
