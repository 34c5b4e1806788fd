/*
 * probe.h - one host's part in probing a network: rounds by the clock, meetings in between.
 *
 *     meet: ports, a nonce ── latency, all pairs ── meet: reports ── suspects ── again ── meet
 *       ── bandwidth, the same way ── the first host groups ── meet: groups
 *       ── all send within their groups, then to other groups ── meet: reports
 *
 * The caller provides the meeting: a call that gathers some bytes of every host (usually a collective of a
 * job). Every host makes the same meetings in the same order, whatever it has measured; a host that is missing
 * at one is excluded from then on. Between meetings hosts do not wait for each other: rounds begin by the
 * clock. So a host that vanishes or stops costs its own measurements only.
 *
 * One process per host measures; other processes of the job may take part in the meetings as observers, and get
 * the result. Opens sockets and blocks for its whole duration. Decisions are in the pure parts: schedule.h,
 * timing.h, echo.h, collect.h, found.h.
 */
#ifndef NETWORK_PROBE_PROBE_H
#define NETWORK_PROBE_PROBE_H

#include "network/probe/found.h"
#include "network/probe/place.h"
#include "network/probe/timing.h"

#define PROBE_HOSTS_MAX 1024u
#define PROBE_OBSERVER UINT32_MAX
#define PROBE_KEY_BYTES 32u
#define PROBE_STREAMS 4u /* connections per path, by default */
#define PROBE_SECONDS 8.0

/*
 * Sends `bytes` bytes and gets those of all hosts, by host. present: by host; false: it is gone, its bytes are
 * zero. Has a deadline of its own. mine is NULL for an observer. Any status but ESP_OK ends probing.
 */
typedef enum esp_status probe_exchange_fn(void *context, const void *mine, size_t bytes, void *all, bool *present,
                                          struct error *err);

/* Groups the hosts of the survey; called on the first host only. */
typedef enum esp_status probe_group_fn(void *context, const struct survey *survey, struct grouping *out,
                                       struct error *err);

/* Reports progress to the user; called on every host. */
typedef void probe_progress_fn(void *context, const char *what, uint32_t done, uint32_t all);

struct probe_config {
	uint32_t hosts;           /* 2 .. PROBE_HOSTS_MAX */
	uint32_t self;            /* or PROBE_OBSERVER    */
	const char *const *names; /* by host, unique; borrowed */
	struct place *places;     /* by host: addresses; probe_run() fills in the ports. Borrowed */
	uint16_t port_first, port_last; /* as in probe_place_open() */
	uint8_t key[PROBE_KEY_BYTES];   /* the job's key */
	bool latency, bandwidth;  /* distances to measure; at least one */
	double seconds;           /* 0: PROBE_SECONDS     */
	uint32_t streams;         /* 0: PROBE_STREAMS     */
	uint64_t seed;            /* the same on all hosts */
	probe_exchange_fn *exchange;
	void *exchange_context;
	probe_group_fn *group;
	void *group_context;
	probe_progress_fn *progress; /* may be NULL */
	void *progress_context;
};

/*
 * All hosts get the same *out (the caller calls probe_found_fini()), unless a host vanishes during a meeting.
 * ESP_EPEER: fewer than two hosts are left; ESP_ELINK, ESP_ENOMEM, ESP_EINVAL; errors of exchange and group.
 */
ESP_CHECKED enum esp_status probe_run(const struct probe_config *config, struct found *out, struct error *err);

#endif
