/*
 * measure.h - does the lab do what was asked? Rates and latencies of its links, beside what they should be.
 *
 * A host's link is measured by one TCP flow to another host of the rack, an uplink by flows from all hosts of a rack to
 * those of the next one. What counts are bytes that arrive, taken as Ethernet frames: what the shapers count. A latency is the
 * time of a small datagram there and back on an idle path.
 */
#ifndef TOOLS_LAB_MEASURE_H
#define TOOLS_LAB_MEASURE_H

#include "tools/lab/fabric.h"

#define MEASURE_TOLERANCE 0.05

enum measure_class { MEASURE_HOST, MEASURE_UPLINK };

struct measure {
	/* what is measured */
	uint8_t class; /* enum measure_class */
	uint32_t rail;
	uint32_t from, to; /* hosts; racks for an uplink */
	uint64_t asked_bits;
	uint64_t asked_rtt_ns; /* 0: as little as there is */
	/* what came of it */
	uint32_t tries; /* 0: not measured */
	double bits;
	uint64_t rtt_ns; /* median */
	char failure[96]; /* empty: none */
};

/*
 * Pure: what there is to measure, one of each class or all of them. Writes at most room; returns how many.
 * Links that are cut or down are left out of all, as nothing can be said about them.
 */
size_t measure_plan(const struct lab *lab, bool all, struct measure *out, size_t room);

/* Takes seconds and some more; up to three tries if the rate is off. The process ends up in some space. */
void measure_run(const struct fabric *fabric, double seconds, struct measure *measure);

/* Is it within the tolerance? A latency only counts where one was asked for. */
bool measure_is_right(const struct measure *measure);

#endif
