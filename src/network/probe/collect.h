/*
 * collect.h - merges the reports of all hosts: which hosts to trust, and the distances between hosts.
 *
 * Every number is known twice. Both ends measure the same round trip, and a host cannot receive more than was
 * sent: a host that contradicts most of its partners is excluded, the worst first. So is a host without a valid
 * report, and one that was out of reach of most others. Pure.
 */
#ifndef NETWORK_PROBE_COLLECT_H
#define NETWORK_PROBE_COLLECT_H

#include "network/probe/probe_report.h"
#include "network/topo/matrix.h"

enum probe_fate {
	PROBE_IN,
	PROBE_ABSENT,   /* has sent no report: it has vanished */
	PROBE_NONSENSE, /* its report cannot be decoded */
	PROBE_SILENT,   /* does not answer most of the others */
	PROBE_LIES,     /* its report contradicts those of most others           */
	PROBE_NOT_STARTED, /* was to take part, but is no host of the job */
};
/* A predicate for the host: "does not answer the probes of most other hosts (a firewall?)". */
const char *probe_fate_text(enum probe_fate fate);

struct collect_input {
	uint32_t hosts;
	const struct report_row *rows; /* by reporter and host: hosts * hosts */
	bool latency, bandwidth;       /* the measured distances */
	double window;                 /* counted seconds of a round */
};

/* Excludes hosts. fates: PROBE_ABSENT, PROBE_NONSENSE or PROBE_IN on entry; final on return. */
void probe_collect_expel(const struct collect_input *input, enum probe_fate *fates);

/*
 * Writes seconds of a round trip, and seconds per byte, into the matrices (from matrix_init()) where both ends
 * take part and something is known. Either may be NULL.
 */
void probe_collect_distances(const struct collect_input *input, const enum probe_fate *fates, struct matrix *latency,
                             struct matrix *inverse);

/* True if the two reports on a pair contradict each other. */
bool probe_collect_contradicts(const struct collect_input *input, uint32_t a, uint32_t b);

#endif
