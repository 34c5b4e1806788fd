/*
 * collect.h - the reports of all hosts put together: whom to believe, and how far hosts are from each other.
 *
 * Every number is known twice. Two ends measure the same way there and back, and nobody has received what was not sent: a host that
 * contradicts most of those whom it has met is left out, the worst first. So is one of whom nothing, or nothing that makes sense, was heard, or that was out
 * of reach of most others. Pure.
 */
#ifndef NETWORK_PROBE_COLLECT_H
#define NETWORK_PROBE_COLLECT_H

#include "network/probe/probe_report.h"
#include "network/topo/matrix.h"

enum probe_fate {
	PROBE_IN,
	PROBE_ABSENT,   /* has handed in nothing: it has vanished                */
	PROBE_NONSENSE, /* its report cannot be read                             */
	PROBE_SILENT,   /* does not answer most of the others                    */
	PROBE_LIES,     /* its report contradicts those of most others           */
	PROBE_NOT_STARTED, /* was to take part, and is no host of the job at all */
};
/* "does not answer the probes of the other hosts" */
const char *probe_fate_text(enum probe_fate fate);

struct collect_input {
	uint32_t hosts;
	const struct report_row *rows; /* by reporter and host: hosts * hosts */
	bool latency, bandwidth;       /* what was measured                   */
	double window;                 /* seconds in which a round counted    */
};

/* Whom to believe. fates: in: PROBE_ABSENT and PROBE_NONSENSE, or PROBE_IN; out: all of them. */
void collect_expel(const struct collect_input *input, enum probe_fate *fates);

/*
 * The matrices (matrix_init() of so many hosts) get seconds there and back, and seconds per byte, where both ends are in and something
 * is known. Either may be NULL.
 */
void collect_distances(const struct collect_input *input, const enum probe_fate *fates, struct matrix *latency, struct matrix *inverse);

/* Do the two reports on a pair contradict each other? */
bool collect_contradicts(const struct collect_input *input, uint32_t a, uint32_t b);

#endif
