/*
 * found.h - the result of probing: survey, groups and rates, and the topology made of them.
 *
 * Hosts are the ones that took part, numbered from 0; the others are only listed. Plain data, and pure
 * functions over it.
 */
#ifndef NETWORK_PROBE_FOUND_H
#define NETWORK_PROBE_FOUND_H

#include <stdio.h>

#include "network/probe/collect.h"
#include "network/topo/grouping.h"
#include "network/topo/survey.h"
#include "network/topo/topology.h"

/* A host that is not in the survey. */
struct found_lost {
	char name[SURVEY_NAME_MAX + 1];
	enum probe_fate fate;
};

struct found {
	struct survey survey;      /* of the hosts that took part */
	struct grouping grouping;  /* of those hosts; count 0: none */
	/* by host, bytes per second: the most that it has sent, and received, in a round; 0: unknown */
	double *rate_out, *rate_in;
	/* by group: the total that its hosts sent to other groups, and received from them; 0: unknown */
	double *uplink_out, *uplink_in;
	uint32_t lost_count;
	struct found_lost *lost;
	double seconds; /* duration of probing */
};

void probe_found_fini(struct found *found); /* accepts a zeroed struct */

/* Allocates rates by host and group, all unknown; the grouping must be set. ESP_ENOMEM. */
ESP_CHECKED enum esp_status probe_found_rates_init(struct found *found, struct error *err);

/*
 * Estimates unknown rates from the matrices, which are all that a stored survey has. Inverse bandwidths are of
 * rounds in which all hosts were active, so a group had the random number of flows to other groups.
 */
void probe_found_estimate_rates(struct found *found);

/* Rates out of and into groups from a round in which all hosts send to other groups: rows by reporter and host. */
void probe_found_uplinks(const struct report_row *rows, uint32_t hosts, const struct grouping *grouping,
                         double *out_out, double *out_in);

/*
 * Prints a topology (network/topo/topology.h): a root, a switch per group, the hosts by name. comments: lines
 * printed first, each with a '#', or NULL. ESP_EINVAL: a rate is unknown; ESP_EIO.
 */
ESP_CHECKED enum esp_status probe_found_print_topology(const struct found *found, const char *const *comments,
                                                       FILE *file, struct error *err);

/* Prints further lines for hosts that were excluded: outside of all groups, with the rate of the slowest host. */
ESP_CHECKED enum esp_status probe_found_print_lost(const struct found *found, FILE *file, struct error *err);

/* The same topology as a structure. */
ESP_CHECKED enum esp_status probe_topology(const struct found *found, struct topology **out, struct error *err);

#endif
