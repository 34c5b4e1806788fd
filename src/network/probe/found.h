/*
 * found.h - what is known of a network when probing has ended, and the topology that it makes.
 *
 * Hosts are those that took part, numbered from 0; the others are only named. Plain data, and pure functions over it.
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
	struct grouping grouping;  /* of them; count 0: none      */
	double *rate_out, *rate_in; /* by host, bytes per second: the most that it has sent, and received, in a round; 0: not known */
	double *uplink_out, *uplink_in; /* by group: what its hosts sent to other groups, and received, all together; 0: not known */
	uint32_t lost_count;
	struct found_lost *lost;
	double seconds; /* that probing took */
};

void found_fini(struct found *found); /* accepts a zeroed struct */

/* Memory for rates by host and group, all not known; the grouping is there. ESP_ENOMEM. */
ESP_CHECKED enum esp_status found_rates_init(struct found *found, struct error *err);

/*
 * Rates for what was not measured, from the matrices: of a stored survey there is nothing else. Inverse bandwidths are of rounds in
 * which all hosts were at it, so a group had as many flows out as chance gives.
 */
void found_estimate_rates(struct found *found);

/* Rates out of and into the groups from a round in which all send to other groups at once: rows by reporter and host. */
void found_uplinks(const struct report_row *rows, uint32_t hosts, const struct grouping *grouping, double *out_out, double *out_in);

/*
 * The text of a topology (network/topo/topology.h): a root, a switch for each group, the hosts by name. comments: lines that are put
 * in front, each with a '#', or NULL. ESP_EINVAL: a rate is not known; ESP_EIO.
 */
ESP_CHECKED enum esp_status found_print_topology(const struct found *found, const char *const *comments, FILE *file, struct error *err);

/* Lines behind that for hosts that were lost: beside all groups, with the rate of the slowest host. For jobs that have them all the same. */
ESP_CHECKED enum esp_status found_print_lost(const struct found *found, FILE *file, struct error *err);

/* The same, made. */
ESP_CHECKED enum esp_status probe_topology(const struct found *found, struct topology **out, struct error *err);

#endif
