/*
 * shaper.h - from a rate to the numbers of its queue.
 *
 * htb is exact only if its bucket holds several of the largest things that are sent at once, and those are trains of
 * TCP segments that stay together. Yet what fits into the bucket passes at the speed of the machine, so at low rates
 * a bucket for whole trains of 64 KiB would be a present of many milliseconds. So the trains are bounded too: to what
 * the link carries in half a millisecond. The bucket then holds two milliseconds, from about 70 Mbit/s to 1 Gbit/s.
 */
#ifndef TOOLS_LAB_SHAPER_H
#define TOOLS_LAB_SHAPER_H

#include <stdint.h>

struct shaper {
	uint64_t rate;        /* bit/s of Ethernet frames, without preamble, check sequence and gap */
	uint32_t train_bytes; /* gso_max_size of the interface that sends: the longest train */
	uint32_t burst_bytes; /* the bucket */
	uint32_t queue_bytes; /* what waits for its turn at most; beyond that, frames are dropped */
};

struct shaper shaper_for(uint64_t rate, uint32_t mtu);

#endif
