/*
 * check_run.h - one chunk of a plan, run symbolically. Private to src/plan.
 */
#ifndef PLAN_CHECK_RUN_H
#define PLAN_CHECK_RUN_H

#include "plan/check.h"
#include "plan/sets.h"

/* A message of the chunk: sent by a step of one row, taken by a step of another. */
struct check_message {
	uint32_t from, to;
	uint32_t from_step;
	uint32_t taken_step;   /* PLAN_NONE: not taken yet                        */
	uint32_t set;          /* the contributors whose sum it carries           */
	uint32_t round, turn;
	uint32_t next;         /* the next one of the same pair of nodes          */
	uint32_t same_place;   /* the one sent before it from the same place      */
	uint32_t taken_before; /* the one that its receiver took before it        */
};

/* The messages from one node to another: first_waiting is the next to be taken. */
struct check_pair {
	uint64_t key;
	uint32_t epoch; /* the entry is in use if this is the chunk's */
	uint32_t first_waiting, last;
	uint32_t count; /* of its messages, taken ones too */
};

struct check_place {
	uint32_t set;  /* PLAN_NONE: nothing was written yet         */
	uint32_t sent; /* the last message sent from here, PLAN_NONE */
};

struct check_node {
	uint64_t first_step; /* into steps */
	uint32_t step_count, step;
	uint32_t term;       /* next term of the fold that is being run          */
	uint32_t sum;        /* of the terms so far                              */
	uint32_t round;
	uint32_t turn;       /* the least that a send may have: behind all that was taken */
	uint32_t waits_for;  /* node, or PLAN_NONE                               */
	uint32_t last_taken;
	uint32_t carriers;   /* messages that it sent with its own contribution */
	uint64_t first_place;
	bool aliased;        /* in and out are one place */
	bool fetched, delivered, woken;
};

struct check_run {
	const struct plan *plan;
	const struct plan_observer *observer;
	uint64_t chunk;
	struct plan_piece piece;
	struct plan_row row;
	struct sets sets;

	struct plan_step *steps;
	size_t steps_used, steps_capacity;
	struct check_place *places;
	size_t places_used, places_capacity;
	struct check_message *messages;
	uint32_t message_count;
	size_t message_capacity;
	struct check_pair *pairs; /* open addressing */
	uint32_t pair_capacity, pair_count, epoch;
	struct check_node *nodes;
	uint32_t *involved; /* the nodes that may have a row of the chunk */
	uint32_t involved_count;
	bool loading; /* the row at hand is still in row */
	uint32_t *ready; /* a stack of nodes that can go on */
	uint32_t ready_count;
	uint32_t *seen; /* by node: how far the search for a cause has looked */
	uint32_t *seen_epoch;
	uint32_t search_epoch;
	struct { uint32_t node, step; } *search;

	uint64_t *sent_bytes, *received_bytes; /* by node, over all chunks */
	uint64_t order; /* of addition, in the sums that the chunk's workers deliver; 0: none was delivered yet */
	struct plan_report report;
	struct plan_fault fault;
	struct error *err;
};

ESP_CHECKED enum esp_status plan_check_run_init(struct check_run *run, const struct plan *plan,
                                                const struct plan_observer *observer, struct error *err);
void plan_check_run_fini(struct check_run *run);
ESP_CHECKED enum esp_status plan_check_run_chunk(struct check_run *run, uint64_t chunk);

/* Says where and why, and returns ESP_EPLAN. */
enum esp_status check_fail(struct check_run *run, uint32_t node, uint32_t step, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* check_pieces.c: are the pieces those of the collective, without gap or overlap? */
ESP_CHECKED enum esp_status plan_check_pieces(const struct plan *plan, struct plan_fault *fault, struct error *err);

/* check_mail.c: the messages between the nodes. */
ESP_CHECKED enum esp_status plan_mail_send(struct check_run *run, uint32_t from, uint32_t to,
                                           struct check_place *place);
/* The next message for the node from `from`, or PLAN_NONE. */
uint32_t plan_mail_take(struct check_run *run, uint32_t node, uint32_t from);
/* A message that was sent and never taken, or PLAN_NONE. */
uint32_t plan_mail_left(const struct check_run *run);
/* A message that was taken after one of a later turn, or PLAN_NONE. */
uint32_t plan_mail_out_of_turn(const struct check_run *run);
/*
 * Was `message`, which node sent, certainly consumed when node is at its present step and
 * has just got `news` (PLAN_NONE: nothing)?
 */
bool plan_mail_consumed(struct check_run *run, uint32_t node, uint32_t message, uint32_t news);
void plan_mail_clear(struct check_run *run);

#endif
