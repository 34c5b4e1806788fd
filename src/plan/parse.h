/*
 * parse.h - a plan while it is read: what parse.c, parse_head.c, parse_row.c and parse_turns.c share. Private to
 * src/plan.
 *
 * Everything here grows with the text and by no more than a small factor: a hostile head ("nodes 16777216") is refused
 * before anything is set aside for it.
 */
#ifndef PLAN_PARSE_H
#define PLAN_PARSE_H

#include "plan/plan.h"
#include "plan/scan.h"

/* A list with its runs of equal values: value from where the run before ends, up to `end`. */
struct parse_run {
	uint64_t value;
	uint64_t end;
};

struct parse_list {
	struct parse_run *runs;
	uint64_t count;
	size_t capacity;
	uint64_t least; /* the run of the smallest value */
};

struct parser {
	struct scan scan;
	uint64_t row_limit; /* most nodes * chunks that this text justifies */
	struct plan *plan;  /* owned; holds steps and row_at                */
	struct parse_list input, output;
	struct plan_piece *pieces;
	uint64_t piece_count;
	size_t piece_capacity, step_capacity;
	uint64_t row_count; /* entries of row_at that are set; the next row's node follows from it */
	size_t row_capacity;
	uint64_t *known; /* rows that stand in steps, by their hash; 0: free */
	uint64_t known_count, known_capacity;
	struct plan_sent *sent; /* the sends of the row at hand, in this order; with laps only */
	uint64_t *sent_order;   /* to sort it: node << 32 | place in sent */
	uint64_t sent_count;
	size_t sent_capacity, order_capacity, turn_capacity;
	uint64_t turned; /* so many of them have their turns */
	uint64_t root_line, lap_line;
};

/* vec_reserve() for a part of the plan; false: no memory, and the scan has stopped with the reason. */
bool plan_parse_grow(struct parser *parser, void *items, size_t needed, size_t *capacity, size_t size);

/* A node that the plan has. */
bool plan_parse_node(struct parser *parser, uint32_t *out);

/* The first row, which is the empty one. Before anything else. */
bool plan_parse_first_row(struct parser *parser);

/* May the plan have so many chunks? Its table has an entry for each node and chunk, with or without a row. */
bool plan_parse_rows_fit(struct parser *parser, uint64_t chunks);

/* Up to the first line that is no key: a chunk, or the end. */
bool plan_parse_head(struct parser *parser);

/* "3: step; step; ..." of the chunk that was begun last. */
bool plan_parse_row(struct parser *parser);

/*
 * parse_turns.c: the turns of a row's messages, of a plan with laps; in one without, no row has any. A row begins,
 * sends, and is complete: it begins at steps[at] then, and its turns are kept beside it.
 */
bool plan_parse_turns_init(struct parser *parser);
void plan_parse_turns_begin(struct parser *parser);
bool plan_parse_turns_sent(struct parser *parser, uint32_t to);
bool plan_parse_turn(struct parser *parser); /* "@3", or nothing, behind some that were sent */
bool plan_parse_turns_end(struct parser *parser, uint32_t node, uint64_t at);

/* Have two rows that stand in steps the same turns? And a number that is likely another if they have not. */
bool plan_parse_turns_same(const struct plan *plan, uint64_t a, uint64_t b);
uint64_t plan_parse_turns_hash(const struct plan *plan, uint64_t at);

/* The rows before row `end` that the text leaves out are empty. */
bool plan_parse_skip_rows(struct parser *parser, uint64_t end);

#endif
