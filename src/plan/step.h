/*
 * step.h - the words of the plan language: places, steps, and the row of a node.
 *
 * A row is what one node does with one chunk: a short list of steps, run in order.
 * Rows of different chunks never wait for each other. docs/plans.md explains the
 * language with pictures.
 *
 *     fetch             the chunk of the caller's input may be read from here on
 *     send  X > P...    send what is in place X to the nodes P
 *     recv= X < P       wait for the chunk from P, replacing what is in X
 *     recv+ X < T...    X becomes T0 op T1 op ..., in this order; each term is a node
 *                       (wait for the chunk from it) or a place of this node
 *     copy  X < Y       X becomes what is in Y
 *     update X          the sum in X is complete: do to it what is done once (average,
 *                       scale, optimizer)
 *     deliver           the caller's output of this chunk is final
 *
 * Sending does not wait; everything else that needs data does. The k-th message that
 * a row receives from a node is the k-th that the node's row of this chunk sends to it.
 */
#ifndef PLAN_STEP_H
#define PLAN_STEP_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_NONE UINT32_MAX /* no node */

/* A place holds one chunk: the caller's input, the caller's output, or scratch. */
enum plan_place { PLAN_IN = 0, PLAN_OUT = 1, PLAN_TMP = 2 /* the first scratch slot; TMP + k is the k-th */ };
#define PLAN_TMP_MAX 32u
#define PLAN_PLACE_COUNT (PLAN_TMP + PLAN_TMP_MAX)
#define PLAN_PLACE_NONE 255u

enum plan_verb {
	PLAN_FETCH,
	PLAN_SEND,    /* place, node                                            */
	PLAN_RECV,    /* place, node                                            */
	PLAN_FOLD,    /* place, count: the next count steps are its terms       */
	PLAN_TERM,    /* node: a term of a fold, received from it               */
	PLAN_LOCAL,   /* place: a term of a fold, held by this node             */
	PLAN_COPY,    /* place, node = the place that is read                   */
	PLAN_UPDATE,  /* place                                                  */
	PLAN_DELIVER, /* place is always PLAN_OUT                               */
};

/* In place of a verb, in plans that hold their rows: the head of a row of `count` steps. */
#define PLAN_ROW 255u

struct plan_step {
	uint8_t verb;
	uint8_t place;
	uint16_t unused; /* zero, so that steps compare with memcmp */
	union {
		uint32_t node;   /* SEND, RECV, TERM */
		uint32_t count;  /* FOLD, ROW        */
		uint32_t source; /* COPY: a place    */
	};
};
static_assert(sizeof(struct plan_step) == 8, "a step is eight bytes");

/*
 * A row under construction. Zeroed is empty; keep it from row to row, so that its
 * memory is reused. A row that ran out of memory or scratch is marked, not cut short
 * in silence: plan_row() reports it.
 */
struct plan_row {
	struct plan_step *steps;
	uint32_t count;
	size_t capacity;
	uint32_t tmp_count; /* scratch slots in use */
	bool failed;        /* out of memory, or of scratch slots */
};

void plan_row_fini(struct plan_row *row);
void plan_row_clear(struct plan_row *row);

/* Each appends one step; plan_row_step() any. */
void plan_row_step(struct plan_row *row, struct plan_step step);
void plan_row_fetch(struct plan_row *row);
void plan_row_send(struct plan_row *row, uint8_t place, uint32_t to);
void plan_row_recv(struct plan_row *row, uint8_t place, uint32_t from);
void plan_row_copy(struct plan_row *row, uint8_t place, uint8_t source);
void plan_row_update(struct plan_row *row, uint8_t place);
void plan_row_deliver(struct plan_row *row);
void plan_row_fold(struct plan_row *row, uint8_t place, uint32_t term_count);
void plan_row_term(struct plan_row *row, uint32_t node);
void plan_row_local(struct plan_row *row, uint8_t place);

/* The next unused scratch slot. */
uint8_t plan_row_tmp(struct plan_row *row);

#endif
