/*
 * probing_meeting.h - meetings of hosts that all have the same outcome, whichever ranks die in the middle of one.
 *
 * At a meeting every host says some bytes and hears those of all. It is a gather of the job; when a rank dies in it, it
 * may have ended well for some ranks and failed for others. The ranks that are left then shrink their group and compare
 * how many meetings each has been at: none is ahead by more than one, as the next meeting needs all. A rank that was at
 * the meeting tells the others its outcome; if none was, it is held again by the ranks that are left. So a meeting has
 * one outcome, the list of those present included, and the ranks go on in step.
 *
 * Pure but for the calls that it is given. Private to src/api.
 */
#ifndef API_PROBING_MEETING_H
#define API_PROBING_MEETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The calls of a job. Remaining ranks are numbered by their places. */
struct meeting_calls {
	void *context;
	uint32_t (*size)(void *context);
	uint32_t (*rank_at)(void *context, uint32_t place); /* in the whole job */
	enum esp_status (*gather)(void *context, const void *mine, void *all, size_t bytes);
	enum esp_status (*broadcast)(void *context, void *data, size_t bytes, uint32_t place);
	enum esp_status (*shrink)(void *context);
};

struct meeting {
	struct meeting_calls calls;
	uint32_t hosts;
	const uint32_t *host_of; /* by rank: borrowed                   */
	const uint32_t *speaker; /* by host: the rank that speaks for it; borrowed */
	uint64_t number;         /* of meetings that have ended here    */
	uint8_t *last;           /* outcome of the last one: which hosts were present, and their bytes */
	size_t last_bytes;
};

/* Memory of the last meeting. */
void meeting_fini(struct meeting *meeting);

/*
 * mine: `bytes` bytes, NULL for a rank that does not speak. all: of all hosts, zeros of those that are not present. The
 * status of the call that failed: the remaining ranks cannot go on.
 */
ESP_CHECKED enum esp_status meeting_hold(struct meeting *meeting, const void *mine, size_t bytes, void *all,
                                         bool *present);

/*
 * At the end: no rank leaves before all have been at the last meeting, or are dead. A failure in here does not matter
 * any more.
 */
void meeting_leave(struct meeting *meeting);

#endif
