/*
 * probe_parts.h - a host while it probes. Private to src/network/probe.
 */
#ifndef NETWORK_PROBE_PROBE_PARTS_H
#define NETWORK_PROBE_PROBE_PARTS_H

#include "network/probe/burst.h"
#include "network/probe/probe.h"
#include "network/probe/schedule.h"
#include "network/probe/udp.h"

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

/* ---- meetings (probe_meet.c) ---- */

#define GREETING_BYTES (PACKET_NONCE_BYTES + 4u) /* and two ports */

/* prober->mine is said, prober->all heard; whoever is not there is PROBE_ABSENT. */
ESP_CHECKED enum esp_status meet(struct prober *prober, size_t bytes, struct error *err);
/* What was said at a meeting of so many bytes. */
const uint8_t *said_by(const struct prober *prober, uint32_t host, size_t bytes);

/* The host whose word counts where one has to decide; as many as there are hosts: nobody. Is it this one? */
uint32_t first_present(const struct prober *prober);
bool decides(const struct prober *prober);

ESP_CHECKED enum esp_status say_hello(struct prober *prober, struct error *err);
/* All start together. */
ESP_CHECKED enum esp_status line_up(struct prober *prober, struct error *err);
/* Reports what was measured, and hears what others have. */
ESP_CHECKED enum esp_status hand_in(struct prober *prober, struct error *err);
struct collect_input input_of(const struct prober *prober, bool latency, bool bandwidth);

/* ---- pairs that are probed again (probe_again.c) ---- */

/* Meets twice, whether there is anybody to be probed again or not. */
ESP_CHECKED enum esp_status probe_again(struct prober *prober, bool latency, struct error *err);
size_t again_bytes(const struct prober *prober); /* that are said at such a meeting */

/* ---- rates of hosts and groups (probe_rates.c) ---- */

/* kept: the hosts of found, of which the grouping is known. */
ESP_CHECKED enum esp_status probe_rates(struct prober *prober, const uint32_t *kept, uint32_t count, struct found *found, struct error *err);

/* ---- rounds (probe_rounds.c) ---- */

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

/* A schedule from its first round on. */
void play_schedule(struct prober *prober, const struct schedule *schedule, uint32_t rounds, const char *what);
/* Connections on a way. */
uint32_t streams_of(const struct prober *prober);

/* Within groups, and between them: by host, UINT32_MAX for those who are in none. */
struct target_groups {
	uint32_t hosts, count;
	const uint32_t *group_of;
};
uint32_t target_within(const void *context, uint32_t round, uint32_t host);
uint32_t target_between(const void *context, uint32_t round, uint32_t host);

#endif
