/*
 * probe_parts.h - a host while it probes. Private to src/probe.
 */
#ifndef PROBE_PROBE_PARTS_H
#define PROBE_PROBE_PARTS_H

#include "probe/probe.h"
#include "probe/schedule.h"
#include "probe/burst.h"
#include "probe/udp.h"

struct prober {
	const struct probe_config *config;
	struct timing timing;
	bool measures;             /* is no observer, and has its ports */
	struct udp udp;
	struct burst_port port;
	struct packet_session session;
	struct echo echo;
	struct samples *samples;   /* by host */
	struct report_row *rows;   /* our own, by host */
	struct report_row *all_rows; /* by reporter and host */
	enum probe_fate *fates;
	bool *present;             /* at the last meeting */
	uint8_t *mine, *all;       /* of a meeting; room for `room` bytes of each host */
	size_t room;
	uint32_t round;            /* number of the next, of all that are played */
	uint32_t steps, steps_all; /* for people */
	double window;             /* seconds that a round of bandwidth counted; the longest */
};

/* Whom a host sends to in a round; SCHEDULE_NOBODY. context: of whoever made the function. */
typedef uint32_t target_fn(const void *context, uint32_t round, uint32_t host);

/* Rounds of latency and of bandwidth, from now on by the clock. */
void play_latency(struct prober *prober, const struct schedule *schedule, uint32_t rounds, uint64_t slot_ns, uint64_t patience_ns);
struct play {
	target_fn *target;
	const void *context; /* of target */
	uint32_t first;      /* round, as target counts them */
	uint32_t rounds;
	uint64_t slot_ns;
	uint32_t streams;
	const char *what;    /* for people */
};
void play_bandwidth(struct prober *prober, const struct play *play);

/* A tournament, or given pairs. */
uint32_t target_by_schedule(const void *schedule, uint32_t round, uint32_t host);

/* Within groups, and between them: by host, UINT32_MAX for those who are in none. */
struct target_groups {
	uint32_t hosts, count;
	const uint32_t *group_of;
};
uint32_t target_within(const void *groups, uint32_t round, uint32_t host);
uint32_t target_between(const void *groups, uint32_t round, uint32_t host);

#endif
