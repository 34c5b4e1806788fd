/*
 * sim_arrows.h - arrows from where a message leaves to where it arrives, in a trace in Chrome's format. One thread;
 * no I/O but the trace's FILE.
 *
 * A message from host to host has one arrow. Switches are not drawn: of a chunk that goes through them, an arrow
 * leads from each host that sent a part of it to each host that received it.
 */
#ifndef TOOLS_SIM_SIM_ARROWS_H
#define TOOLS_SIM_SIM_ARROWS_H

#include "report/trace_event.h"
#include "sim/cluster.h"

/* Virtual time in ticks of the trace: picoseconds. */
int64_t sim_tool_ticks(double seconds);

struct sim_departure;

/* Zeroed: empty. */
struct sim_arrows {
	struct sim_departure *departures;
	uint32_t *heads; /* hash buckets, by stream, call and chunk */
	uint32_t count;
	size_t room, head_count; /* powers of two, or 0 */
	uint64_t drawn;
};

/* Draws an arrow; slices must begin at both spots. */
void sim_tool_arrow_draw(struct sim_arrows *arrows, struct trace_events *events, struct trace_spot from,
                         struct trace_spot to);

/* A host has sent the message to a switch. If memory runs out, its arrows are missing. */
void sim_tool_arrows_leave(struct sim_arrows *arrows, const struct cluster_message *message, struct trace_spot from);
/* A host has received the message from a switch. */
void sim_tool_arrows_arrive(struct sim_arrows *arrows, struct trace_events *events,
                            const struct cluster_message *message, struct trace_spot to);

void sim_tool_arrows_fini(struct sim_arrows *arrows);

#endif
