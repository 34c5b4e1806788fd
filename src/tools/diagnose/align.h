/*
 * align.h - how far the clocks of hosts are apart, from calls in which all ranks meet.
 *
 * No rank ends such a call before all have begun it. So of two hosts each call says: what begins here lies before what ends
 * there, and the other way round; both bounds of all calls together leave an interval for the difference of the clocks, and
 * its middle is off by no more than half of it. Clocks drift, so a call counts the less the longer ago it was, that is done for one
 * stretch of time after the other, and in between the difference changes evenly. Pure.
 */
#ifndef TOOLS_DIAGNOSE_ALIGN_H
#define TOOLS_DIAGNOSE_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ALIGN_STRETCHES 64u

/* A call as one rank of a host had it, in nanoseconds of the host's clock. */
struct align_meeting {
	uint64_t call; /* the same on all ranks, of one call only */
	uint32_t host; /* below align_hosts' count                */
	int64_t begin_ns, end_ns;
};

/* What is to be added to the times of a host. */
struct align_host {
	bool is_known;                         /* otherwise nothing is to be had from calls        */
	int64_t error_ns;                      /* the most that it is off, where it was measured   */
	uint32_t count;
	int64_t at_ns[ALIGN_STRETCHES];        /* by the host's own clock, rising                  */
	int64_t difference_ns[ALIGN_STRETCHES];
};

/* Host 0 is the one that all others are measured by, some of them by way of others. Sorts the meetings. ESP_ENOMEM. */
ESP_CHECKED enum esp_status align_hosts(struct align_meeting *meetings, size_t meeting_count, uint32_t host_count,
                                        struct align_host *out);

/* What is to be added to this moment of the host's clock. */
int64_t align_at(const struct align_host *host, int64_t at_ns);

#endif
