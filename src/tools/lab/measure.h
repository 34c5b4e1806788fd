/*
 * measure.h - measures rates and latencies of a lab's links, and compares them with the settings.
 *
 * A host's link is measured with one TCP flow to another host of the rack, an uplink with flows from all hosts
 * of a rack to those of the next one. A rate counts delivered bytes as Ethernet frames, as the shapers do. A
 * latency is the round trip of a small datagram on an idle path.
 */
#ifndef TOOLS_LAB_MEASURE_H
#define TOOLS_LAB_MEASURE_H

#include "tools/lab/fabric.h"

#define MEASURE_TOLERANCE 0.05

enum measure_class { MEASURE_HOST, MEASURE_UPLINK };

struct measure {
	/* the measurement */
	uint8_t class; /* enum measure_class */
	uint32_t rail;
	uint32_t from, to; /* hosts; racks for an uplink */
	uint64_t asked_bits;
	uint64_t asked_rtt_ns; /* 0: no delay is set */
	/* the result */
	uint32_t tries; /* 0: not measured yet */
	double bits;
	uint64_t rtt_ns; /* median */
	char failure[96]; /* empty: none */
};

/*
 * Pure: the measurements to make, one of each class or all of them. Writes at most `room`; returns their
 * number. Links that are cut or down are not measured.
 */
size_t lab_measure_plan(const struct lab *lab, bool all, struct measure *out, size_t room);

/* Takes `seconds` and a little more; up to three tries if the rate is off. The process ends in some space's network. */
void lab_measure_run(const struct fabric *fabric, double seconds, struct measure *measure);

/* True if it is within the tolerance. A latency counts only if a delay is set. */
bool lab_measure_is_right(const struct measure *measure);

#endif
