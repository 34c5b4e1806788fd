/*
 * check.h - the checker: runs a plan symbolically and proves that it keeps its promises.
 *
 * For every chunk it walks the rows of all nodes with sets of contributors in place of data. A plan passes when
 *   - every worker that wants a chunk delivers it once, holding each contributor exactly
 *     once, updated exactly once if the collective reduces; no other node delivers;
 *   - all of them deliver sums that were added in the same order, so the same bits;
 *   - no step waits for a message that is never sent, and no message is left over;
 *   - no nodes wait for each other in a cycle: then no schedule deadlocks, with messages in order on
 *     each connection and as little as one credit (docs/plans.md has the proof); where
 *     several chunks are numbered together, turns rise along every row;
 *   - no data that is still being sent is overwritten: its sender has been told,
 *     through the messages that came back, that it was consumed;
 *   - the pieces are those of the collective and fill the output of every receiver without
 *     gap or overlap; input is not read before it is fetched, nothing is read that was
 *     never written.
 *
 * Work and memory are those of one chunk after the other: for each, its steps, and for each of its sums a set of one
 * bit per worker.
 */
#ifndef PLAN_CHECK_H
#define PLAN_CHECK_H

#include "plan/plan.h"

struct plan_report {
	uint64_t chunks;
	uint64_t rows;          /* that have steps                                     */
	uint64_t steps;
	uint64_t messages;
	uint32_t rounds;        /* the longest chain of messages that wait for each other */
	uint64_t wire_bytes;    /* of all messages                                     */
	uint64_t cross_bytes;   /* of messages between nodes of different groups       */
	uint32_t busiest_node;  /* the one that sends and receives most bytes          */
	uint64_t busiest_bytes;
	uint64_t busiest_sent;     /* most bytes that any one node sends    */
	uint64_t busiest_received; /* most bytes that any one node receives */
	uint32_t scratch_slots; /* most scratch places in a row                        */
	uint32_t row_steps;     /* in the longest row                                  */
	uint64_t order;         /* digest of the order of addition of all chunks: plans that
	                           agree in it give the same bits                      */
};

/* Where a plan first breaks a rule; counts as PLAN_NONE / UINT64_MAX where it has no such place. */
struct plan_fault {
	uint64_t chunk;
	uint32_t node;
	uint32_t step; /* number in the row's text, from 1 */
};

/* Told of every message in an order in which they could be sent; may be NULL. For drawings and costs. */
struct plan_observer {
	void (*message)(void *context, uint64_t chunk, uint32_t from, uint32_t to, uint32_t round, uint64_t bytes,
	                bool reduced /* the chunk is final: on its way down */);
	void *context;
};

/*
 * ESP_OK and *out_report; or ESP_EPLAN with the first reason in err and, if out_fault is
 * not NULL, its place; or ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status plan_check(const struct plan *plan, const struct plan_observer *observer,
                                       struct plan_report *out_report, struct plan_fault *out_fault, struct error *err);

/* Checks (and, for an observer, walks) chunks first .. first + count - 1 only. */
ESP_CHECKED enum esp_status plan_check_range(const struct plan *plan, uint64_t first, uint64_t count,
                                             const struct plan_observer *observer, struct plan_report *out_report,
                                             struct plan_fault *out_fault, struct error *err);

#endif
