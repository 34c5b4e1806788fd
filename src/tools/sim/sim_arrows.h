/*
 * sim_arrows.h - arrows from where a message left to where it arrived, in a trace in Chrome's form.
 *
 * What goes straight from host to host has one arrow. What goes through switches, which are not drawn, has one from each host
 * that sent something of the chunk to them to each host that got it from them.
 */
#ifndef TOOLS_SIM_SIM_ARROWS_H
#define TOOLS_SIM_SIM_ARROWS_H

#include <stdint.h>
#include <stdio.h>

#include "sim/cluster.h"

/* A moment on a track; it belongs to the slice that begins there. */
struct sim_point {
	uint32_t node, track;
	double at_s;
};

struct sim_departure;

/* Zeroed is empty. */
struct sim_arrows {
	struct sim_departure *departures;
	uint32_t *heads; /* by what was sent */
	uint32_t count, room, head_count;
	uint64_t drawn;
};

void sim_arrow_draw(struct sim_arrows *arrows, FILE *out, struct sim_point from, struct sim_point to);

/* A host sent the message to a switch; when memory runs out its arrows are missing. */
void sim_arrows_leave(struct sim_arrows *arrows, const struct cluster_message *message, struct sim_point from);
/* A host got the message from a switch. */
void sim_arrows_arrive(struct sim_arrows *arrows, FILE *out, const struct cluster_message *message, struct sim_point to);

void sim_arrows_fini(struct sim_arrows *arrows);

#endif
