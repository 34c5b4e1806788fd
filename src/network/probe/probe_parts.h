/*
 * probe_parts.h - the state of a host while it probes. Private to src/network/probe.
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
	struct report_row *rows;   /* this host's report, by host */
	struct report_row *all_rows; /* by reporter and host */
	enum probe_fate *fates;
	bool *present;             /* at the last meeting */
	uint8_t *mine, *all;       /* buffers of a meeting; room for `room` bytes per host */
	size_t room;
	uint32_t round;            /* number of the next round in the session */
	uint32_t steps, steps_all; /* for progress reports */
	double window;             /* counted seconds of a round of bandwidth; the longest */
};

/* ---- meetings (probe_meet.c) ---- */

#define GREETING_BYTES (PACKET_NONCE_BYTES + 4u) /* and two ports */

/* Sends prober->mine, receives prober->all; hosts that are missing become PROBE_ABSENT. */
ESP_CHECKED enum esp_status probe_meet(struct prober *prober, size_t bytes, struct error *err);
/* The bytes of a host at a meeting of so many bytes. */
const uint8_t *probe_sent_by(const struct prober *prober, uint32_t host, size_t bytes);

/* The host that decides where one has to; the number of hosts if none is left. probe_decides(): whether it is this one.
 */
uint32_t probe_first_present(const struct prober *prober);
bool probe_decides(const struct prober *prober);

ESP_CHECKED enum esp_status probe_exchange_hello(struct prober *prober, struct error *err);
/* A meeting without content: all hosts start together. */
ESP_CHECKED enum esp_status probe_wait_for_all(struct prober *prober, struct error *err);
/* Sends this host's report, and receives the others'. */
ESP_CHECKED enum esp_status probe_exchange_reports(struct prober *prober, struct error *err);
struct collect_input probe_input_of(const struct prober *prober, bool latency, bool bandwidth);

/* ---- pairs that are probed again (probe_again.c) ---- */

/* Meets twice, whether pairs are probed again or not. */
ESP_CHECKED enum esp_status probe_again(struct prober *prober, bool latency, struct error *err);
size_t probe_again_bytes(const struct prober *prober); /* size of such a meeting */

/* ---- rates of hosts and groups (probe_rates.c) ---- */

/* kept: the hosts of found, whose grouping is known. */
ESP_CHECKED enum esp_status probe_rates(struct prober *prober, const uint32_t *kept, uint32_t count,
                                        struct found *found, struct error *err);

/* ---- rounds (probe_rounds.c) ---- */

/* The host that `host` sends to in a round; SCHEDULE_NONE. context: the function's own. */
typedef uint32_t target_fn(const void *context, uint32_t round, uint32_t host);

/* Rounds of latency and of bandwidth, from now on by the clock. */
void probe_play_latency(struct prober *prober, const struct schedule *schedule, uint32_t rounds, uint64_t slot_ns,
                        uint64_t patience_ns);
struct play {
	target_fn *target;
	const void *context; /* of target */
	uint32_t first;      /* first round, as target counts them */
	uint32_t rounds;
	uint64_t slot_ns;
	uint32_t streams;
	const char *what;    /* for progress reports */
};
void probe_play_bandwidth(struct prober *prober, const struct play *play);

/* Plays a schedule from its first round on. */
void probe_play_schedule(struct prober *prober, const struct schedule *schedule, uint32_t rounds, const char *what);
/* Connections per path. */
uint32_t probe_streams_of(const struct prober *prober);

/* Targets within groups and between them: groups by host, UINT32_MAX for hosts without a group. */
struct target_groups {
	uint32_t hosts, count;
	const uint32_t *group_of;
};
uint32_t probe_target_within(const void *context, uint32_t round, uint32_t host);
uint32_t probe_target_between(const void *context, uint32_t round, uint32_t host);

#endif
