/*
 * probing.h - the network of a job measured by its own ranks: src/network/probe over a context.
 *
 * The first rank of each host measures, the others are at the meetings. Meetings are calls of the job
 * (probing_meeting.h): when a rank dies the rest shrinks the group, and goes on without its host; the context itself is
 * as it is after such a death. Private to src/api and src/cli.
 */
#ifndef API_PROBING_H
#define API_PROBING_H

#include "espalier/espalier.h"
#include "network/probe/probe.h"

struct probing_options {
	/* of all ranks of the job, for the meetings; it has failed, and was shrunk, if a rank died. NULL: the world */
	struct esp_group *ranks;
	bool latency, bandwidth;
	bool each_rank;   /* every rank stands for a host: to try it out on one machine */
	double seconds;   /* 0: PROBE_SECONDS */
	uint32_t streams; /* 0: PROBE_STREAMS */
	uint64_t seed;
	probe_group_fn *group;
	void *group_context;
	probe_progress_fn *progress; /* may be NULL */
	void *progress_context;
};

/*
 * Called by all ranks with equal options. All ranks that get *out get the same. *out_tells: true on one of the ranks
 * that are left, for printing. Errors as of probe_run(), and of calls.
 */
ESP_CHECKED enum esp_status probing_run(struct esp_context *context, const struct probing_options *options,
                                        struct found *out, bool *out_tells, struct error *err);

/* The names of hosts in the results, unless each rank is one: hosts of equal names have different ones there. */
struct probing_names {
	const char **list; /* by host of the roster */
	char (*texts)[SURVEY_NAME_MAX + 1];
};

ESP_CHECKED enum esp_status probing_names(struct esp_context *context, struct probing_names *out, struct error *err);
void probing_names_fini(struct probing_names *names);

#endif
