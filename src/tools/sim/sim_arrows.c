#include "tools/sim/sim_arrows.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define NONE UINT32_MAX
#define TRACE_MOST_S 9e6 /* more picoseconds do not fit into 64 bits */

/* A message of a chunk that a host has sent to a switch. */
struct sim_departure {
	uint32_t stream;
	uint64_t call, chunk;
	struct trace_spot from;
	uint32_t next; /* in the same bucket */
};

int64_t sim_tool_ticks(double seconds)
{
	assert(seconds >= 0);
	return llround(fmin(seconds, TRACE_MOST_S) * 1e12);
}

void sim_tool_arrow_draw(struct sim_arrows *arrows, struct trace_events *events, struct trace_spot from,
                         struct trace_spot to)
{
	trace_flow(events, arrows->drawn++, "message", "message", from, to);
}

static uint32_t bucket_of(const struct sim_arrows *arrows, uint32_t stream, uint64_t call, uint64_t chunk)
{
	uint64_t hash = (call * UINT64_C(0x9e3779b97f4a7c15) + stream) * UINT64_C(0xbf58476d1ce4e5b9) +
	                chunk * UINT64_C(0x94d049bb133111eb);

	return (uint32_t)(hash >> 32 & (arrows->head_count - 1));
}

static void link_in(struct sim_arrows *arrows, uint32_t index)
{
	struct sim_departure *departure = &arrows->departures[index];
	uint32_t *head = &arrows->heads[bucket_of(arrows, departure->stream, departure->call, departure->chunk)];

	departure->next = *head;
	*head = index;
}

static bool grow(struct sim_arrows *arrows)
{
	if (!vec_reserve(&arrows->departures, &arrows->room, (size_t)arrows->count + 1, sizeof(*arrows->departures)) ||
	    !vec_reserve(&arrows->heads, &arrows->head_count, arrows->room, sizeof(*arrows->heads)))
		return false;
	memset(arrows->heads, 0xff, arrows->head_count * sizeof(*arrows->heads)); /* NONE */
	for (uint32_t i = 0; i < arrows->count; i++)
		link_in(arrows, i);
	return true;
}

void sim_tool_arrows_leave(struct sim_arrows *arrows, const struct cluster_message *message, struct trace_spot from)
{
	if ((arrows->count == arrows->room || arrows->head_count != arrows->room) && !grow(arrows))
		return;
	arrows->departures[arrows->count] =
		(struct sim_departure){.stream = message->stream, .call = message->call, .chunk = message->chunk, .from = from};
	link_in(arrows, arrows->count++);
}

void sim_tool_arrows_arrive(struct sim_arrows *arrows, struct trace_events *events,
                            const struct cluster_message *message, struct trace_spot to)
{
	uint32_t at =
		arrows->head_count ? arrows->heads[bucket_of(arrows, message->stream, message->call, message->chunk)] : NONE;

	for (; at != NONE; at = arrows->departures[at].next) {
		const struct sim_departure *departure = &arrows->departures[at];

        if (departure->stream == message->stream && departure->call == message->call &&
            departure->chunk == message->chunk && departure->from.pid != to.pid)
			sim_tool_arrow_draw(arrows, events, departure->from, to);
	}
}

void sim_tool_arrows_fini(struct sim_arrows *arrows)
{
	free(arrows->departures);
	free(arrows->heads);
	*arrows = (struct sim_arrows){0};
}
