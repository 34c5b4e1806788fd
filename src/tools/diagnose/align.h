/*
 * align.h - the differences between the clocks of hosts, from calls in which all ranks meet.
 *
 * No rank ends such a call before all have begun it. So for two hosts each call bounds the difference of their
 * clocks from both sides: its begin on each is before its end on the other. All calls together leave an
 * interval; its middle is off by at most half its length. Clocks drift, so the bounds of a call widen with the
 * time since it; the difference is computed for one window of time after the other, and interpolated in
 * between. Pure.
 */
#ifndef TOOLS_DIAGNOSE_ALIGN_H
#define TOOLS_DIAGNOSE_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ALIGN_WINDOWS 64u

/* A call as one rank of a host had it, in nanoseconds of the host's clock. */
struct align_meeting {
	uint64_t call; /* the same on all ranks, unique per call */
	uint32_t host; /* below diagnose_align_hosts()' host_count */
	int64_t begin_ns, end_ns;
};

/* The difference to be added to the times of a host. */
struct align_host {
	bool is_known;                         /* false: it shares no call with a known host */
	int64_t error_ns;                      /* largest error, at the windows */
	uint32_t count;
	int64_t at_ns[ALIGN_WINDOWS];        /* on the host's own clock, rising */
	int64_t difference_ns[ALIGN_WINDOWS];
};

/* All hosts are measured against host 0, some of them by way of others. Sorts the meetings. ESP_ENOMEM. */
ESP_CHECKED enum esp_status diagnose_align_hosts(struct align_meeting *meetings, size_t meeting_count,
                                                 uint32_t host_count, struct align_host *out);

/* The difference to be added at this moment of the host's clock. */
int64_t diagnose_align_at(const struct align_host *host, int64_t at_ns);

#endif
