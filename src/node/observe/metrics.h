/*
 * metrics.h - the statistics of a rank in Prometheus' text form (version 0.0.4).
 *
 * Labels are few: job, rank, operation, and size, the most bytes of a class of calls. Pure but for the FILE.
 */
#ifndef NODE_OBSERVE_METRICS_H
#define NODE_OBSERVE_METRICS_H

#include <stdio.h>

#include "base/error.h"
#include "node/observe/tally.h"

struct metrics {
	const char *version, *job, *host;
	uint32_t rank, size;
	const struct tally *tally;
	uint64_t sent_bytes, received_bytes, sent_messages, shared_bytes, network_bytes;
	uint32_t under_way;        /* calls                                         */
	double oldest_seconds;     /* how long the oldest of those has taken so far */
	uint32_t groups, failed_groups;
	uint32_t left, died;       /* ranks of the job                              */
	uint64_t retunes, moved_masters; /* of two-level plans                      */
	uint64_t trace_lost;       /* events that the trace has no room for         */
};

/* ESP_EIO. */
ESP_CHECKED enum esp_status metrics_write(const struct metrics *metrics, FILE *out);

#endif
