/*
 * report.h - what came out, as tables for people and as JSON for programs: the same numbers.
 *
 * Plain data in, text out: nothing here communicates.
 */
#ifndef TRAIN_REPORT_H
#define TRAIN_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct epoch_result {
	double loss;     /* mean cross-entropy of the training samples, while they were learned */
	double accuracy; /* share of them that was classified correctly, 0 .. 1                 */
	double test_loss, test_accuracy; /* of the test set, after the epoch                    */
};

/* Seconds, as the mean over the ranks; struct times says what they are. */
struct plan_seconds {
	double total, waiting, in_flight, cpu, communication_cpu;
};

/* What all ranks together have sent during the training steps. */
struct plan_bytes {
	uint64_t sent, shared, network; /* shared: read where it lay; network: through sockets; the rest was copied */
	uint64_t messages;
	uint64_t busiest;               /* of sent: the most that one rank has sent */
};

struct plan_result {
	const char *plan;            /* as asked for                               */
	char planner[32];            /* as used                                    */
	struct epoch_result *epochs; /* report.epochs of them                      */
	struct plan_seconds seconds;
	struct plan_bytes bytes;
	uint64_t *hashes;            /* of the final weights, by rank              */
};

struct report {
	const char *version;         /* of the library                             */
	uint32_t ranks, plan_count;
	uint64_t epochs, seed, batch, samples, test_samples, steps; /* steps: of an epoch */
	uint64_t parameters;
	uint32_t layers;
	double seconds;              /* everything, from the start of the program  */
	struct plan_result *plans;
};

/* All ranks have the same weights under this plan; under all plans. */
bool report_plan_agrees(const struct report *report, const struct plan_result *plan);
bool report_agrees(const struct report *report);

/* The hash that more than half of the ranks have (if there is none, one of theirs): ranks with another one are odd. */
uint64_t report_common_hash(const struct report *report, const struct plan_result *plan);

void report_tables(const struct report *report, FILE *out);
void report_json(const struct report *report, FILE *out);

#endif
