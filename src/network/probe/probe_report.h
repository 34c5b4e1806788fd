/*
 * probe_report.h - a host's report of its measurements, and its encoding.
 *
 * A row for each host; the reporter's own row is all zero:
 *
 *     rtt low 8   rtt median 8   rates 8   best rate 8   received 8   sent 8   rtt count 4   rate count 4
 *
 * Numbers are little endian, real ones IEEE doubles. A host may send anything: a decoded report is finite,
 * ordered and within the limits of networks; collect.h judges whether it is true. Pure.
 */
#ifndef NETWORK_PROBE_PROBE_REPORT_H
#define NETWORK_PROBE_PROBE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPORT_ROW_BYTES 56u
#define REPORT_RTT_MAX 100.0 /* seconds          */
#define REPORT_RATE_MAX 1e13 /* bytes per second */
#define REPORT_BYTES_MAX (UINT64_C(1) << 56)

struct report_row {
	double rtt_low, rtt_median; /* seconds of a round trip: the 5 % quantile and the median of the samples */
	double rate_sum, rate_best; /* bytes per second from that host: sum over all rounds, and the best round */
	uint64_t received, sent;    /* bytes, in all */
	uint32_t rtt_count;         /* samples; 0: both times are 0 */
	uint32_t rate_count;        /* rounds in which that host was to send */
};

static inline size_t report_bytes(uint32_t hosts)
{
	return (size_t)hosts * REPORT_ROW_BYTES;
}

void probe_report_encode(const struct report_row *rows, uint32_t hosts, uint8_t *out);

/* False: invalid; rows are then untouched. self: the reporter. A decoded report encodes to the same bytes. */
bool probe_report_decode(const uint8_t *bytes, uint32_t hosts, uint32_t self, struct report_row *out);

#endif
