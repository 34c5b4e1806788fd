/*
 * sim_arrows.h - arrows from where a message left to where it arrived, in a trace in Chrome's form.
 *
 * What goes straight from host to host has one arrow. What goes through switches, which are not drawn, has one from each host
 * that sent something of the chunk to them to each host that got it from them.
 */
#ifndef TOOLS_SIM_SIM_ARROWS_H
#define TOOLS_SIM_SIM_ARROWS_H

#include "report/trace_event.h"
#include "sim/cluster.h"

/* Virtual time in ticks of a trace: picoseconds. */
int64_t sim_ticks(double seconds);

struct sim_departure;

/* Zeroed is empty. */
struct sim_arrows {
	struct sim_departure *departures;
	uint32_t *heads; /* by what was sent */
	uint32_t count, room, head_count;
	uint64_t drawn;
};

/* The spots belong to slices that begin there. */
void sim_arrow_draw(struct sim_arrows *arrows, struct trace_events *events, struct trace_spot from, struct trace_spot to);

/* A host sent the message to a switch; when memory runs out its arrows are missing. */
void sim_arrows_leave(struct sim_arrows *arrows, const struct cluster_message *message, struct trace_spot from);
/* A host got the message from a switch. */
void sim_arrows_arrive(struct sim_arrows *arrows, struct trace_events *events, const struct cluster_message *message, struct trace_spot to);

void sim_arrows_fini(struct sim_arrows *arrows);

#endif
