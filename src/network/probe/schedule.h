/*
 * schedule.h - which hosts probe each other, and when: a round-robin tournament.
 *
 *     round 0   0-5 1-4 2-3      N - 1 rounds for N hosts (N if N is odd: one host sits out in each), every pair meets
 *     round 1   1-5 2-0 3-4      exactly once, and no host has two partners in a round.
 *     ...
 *
 * A seed assigns hosts to positions, so that passes with other seeds have other pairs at the same time: on
 * shared links the result of a pair depends on the others.
 *
 * The second kind plays given pairs only, in as few rounds as a greedy choice finds, and pairs all free hosts
 * of a round as well: the given pairs are to meet the same conditions as in a tournament.
 *
 * Pure. All hosts make the same schedule from the same numbers.
 */
#ifndef NETWORK_PROBE_SCHEDULE_H
#define NETWORK_PROBE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SCHEDULE_NONE UINT32_MAX
#define SCHEDULE_HOSTS_MAX 16384u

struct schedule {
	uint32_t hosts, rounds;
	uint32_t *position_of, *host_at; /* of a tournament             */
	uint32_t *partner;           /* by round and host otherwise */
};

struct schedule_pair {
	uint32_t a, b; /* a < b */
};

/* ESP_ENOMEM. Seeds change the order only. */
ESP_CHECKED enum esp_status probe_schedule_tournament(uint32_t hosts, uint64_t seed, struct schedule *out);

/*
 * Plays each of the pairs `times` times. Hosts that are not `usable` (NULL: all are), and their pairs, play in
 * no round. ESP_EINVAL: an invalid pair; ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status probe_schedule_pairs(uint32_t hosts, const struct schedule_pair *pairs, uint32_t count,
                                                 uint32_t times, const bool *usable, uint64_t seed,
                                                 struct schedule *out);
void probe_schedule_fini(struct schedule *schedule); /* accepts a zeroed struct */

/* SCHEDULE_NONE: sits out. */
uint32_t probe_schedule_partner(const struct schedule *schedule, uint32_t round, uint32_t host);

#endif
