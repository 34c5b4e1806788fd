/*
 * advice.h - which mechanism for a model and a cluster, and why: ranks simulated mechanisms, and gives the reasons in
 * words.
 *
 * Times within a few percent of each other are ties: then the mechanism that needs less comes first. The bound of a
 * mechanism is read off the run itself, from the link that was busy for the longest and the time that computing takes;
 * nothing is known of a mechanism but its needs.
 *
 * Pure.
 */
#ifndef SIM_ADVICE_H
#define SIM_ADVICE_H

#include "sim/money.h"
#include "sim/train.h"

#define ADVICE_TIE 0.04 /* times that the network operators' paper counts as equal, too */
#define ADVICE_TEXT 384

struct advice_entry {
	const struct mechanism *mechanism;
	double iteration_s;
	struct train_link busiest;
	/* Written by sim_advice_rank(). */
	double extra_cost;   /* beyond workers and their network */
	double cost;         /* of the cluster */
	double per_1000;     /* samples per second for 1000 of the currency */
	bool is_tie;         /* with the one before it: as good within ADVICE_TIE, but needs more or as much */
	char needs[ADVICE_TEXT];
	/* the wait that bounds it, and, if it is worse than the best, the wait that the best avoids */
	char reason[ADVICE_TEXT];
};

struct advice_case {
	uint32_t workers, servers, racks;
	double compute_s;     /* of the slowest worker, without any network */
	double gbps;          /* of a host's link */
	double oversubscribe; /* at least 1 */
	uint32_t batch;       /* samples of a worker and an iteration */
	const struct money_prices *prices; /* NULL: nothing is said about money */
	bool by_money;        /* the most samples for the money first, not the shortest iteration */
};

/* Sorts the entries, the best one first, and fills them in. ESP_EINVAL: with these prices nothing can be compared. */
ESP_CHECKED enum esp_status sim_advice_rank(struct advice_entry *entries, size_t count, const struct advice_case *about,
                                            struct error *err);

/* The whole in a few sentences; count > 0. */
#define ADVICE_SUMMARY 1536
const char *sim_advice_summary(const struct advice_entry *entries, size_t count, char text[ADVICE_SUMMARY]);

#endif
