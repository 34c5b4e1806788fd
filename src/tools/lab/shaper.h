/*
 * shaper.h - the parameters of a link's queue for a rate. Pure.
 *
 * htb is exact only if its bucket holds several of the largest units that are sent at once, which are trains of
 * TCP segments (GSO). But a burst of the bucket's size passes at the speed of the machine, so at low rates a
 * bucket for trains of 64 KiB would be a burst of many milliseconds. So the trains are bounded too: to half a
 * millisecond of the link's rate. The bucket then holds two milliseconds, from about 70 Mbit/s to 1 Gbit/s.
 */
#ifndef TOOLS_LAB_SHAPER_H
#define TOOLS_LAB_SHAPER_H

#include <stdint.h>

struct shaper {
	uint64_t rate;        /* bit/s of Ethernet frames, without preamble, check sequence and gap */
	uint32_t train_bytes; /* gso_max_size of the sending interface: the longest train */
	uint32_t burst_bytes; /* the bucket */
	uint32_t queue_bytes; /* longest queue; further frames are dropped */
};

struct shaper lab_shaper_for(uint64_t rate, uint32_t mtu);

#endif
