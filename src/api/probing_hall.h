/*
 * probing_hall.h - meetings of hosts that all come to the same end, whoever dies in the middle of one.
 *
 * At a meeting every host says some bytes and hears those of all. It is a gather of the job; when somebody dies in it, it may have ended well
 * for some ranks and failed for others. Those who are left then shrink their group and compare how many meetings each has been at: nobody is ahead
 * by more than one, as the next meeting needs all. Whoever was at the meeting tells the others what was said there; if nobody was, it is held
 * again by those who are left. So a meeting has one outcome, who was present included, and the ranks go on in step.
 *
 * Pure but for the calls that it is given. Private to src/api.
 */
#ifndef API_PROBING_HALL_H
#define API_PROBING_HALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What a job can do. Those who are left are numbered by their places. */
struct hall_calls {
	void *context;
	uint32_t (*size)(void *context);
	uint32_t (*rank_at)(void *context, uint32_t place); /* in the whole job */
	enum esp_status (*gather)(void *context, const void *mine, void *all, size_t bytes);
	enum esp_status (*broadcast)(void *context, void *data, size_t bytes, uint32_t place);
	enum esp_status (*shrink)(void *context);
};

struct hall {
	struct hall_calls calls;
	uint32_t hosts;
	const uint32_t *host_of; /* by rank: borrowed                   */
	const uint32_t *speaker; /* by host: the rank that speaks for it; borrowed */
	uint64_t number;         /* of meetings that have ended here    */
	uint8_t *last;           /* how the last one ended: who was present, what was said */
	size_t last_bytes;
};

/* Memory of the last meeting. */
void hall_fini(struct hall *hall);

/*
 * mine: `bytes` bytes, NULL for a rank that does not speak. all: of all hosts, zeros of those who are not present. The status of the call that
 * failed: those who are left cannot go on.
 */
ESP_CHECKED enum esp_status hall_hold(struct hall *hall, const void *mine, size_t bytes, void *all, bool *present);

/*
 * At the end: nobody leaves before all have been at the last meeting, or are dead. What fails here does not matter any more.
 */
void hall_leave(struct hall *hall);

#endif
