/*
 * metrics.h - the statistics of a rank in Prometheus' text format (version 0.0.4). Any thread; no I/O but the FILE.
 *
 * Labels are few: job, rank, operation, and size, the upper bound of a class of calls in bytes.
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
	uint32_t under_way;        /* calls */
	double oldest_seconds;     /* for which the oldest call under way has been running */
	uint32_t groups, failed_groups;
	uint32_t left, died;       /* ranks of the job */
	uint64_t retunes, moved_masters; /* of two-level plans */
	uint64_t trace_lost;       /* events for which the trace had no room */
};

/* ESP_EIO. */
ESP_CHECKED enum esp_status metrics_write(const struct metrics *metrics, FILE *out);

#endif
