/*
 * tag_queue.h - entries under keys, many under one key if need be, of which the oldest is found first.
 *
 * Putting, taking and finding take as long with ten thousand entries as with ten, whatever the order. An entry has its
 * node inside; a queue allocates nothing but its table, and if there is no memory for a larger one it keeps the small
 * one and becomes slower. Pure, and without a lock of its own.
 */
#ifndef RANK_COMM_TAG_QUEUE_H
#define RANK_COMM_TAG_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define TAG_QUEUE_FEW 8u /* lists of a queue without a table; a power of two */

struct tag_queue_key {
	uint64_t tag;
	uint32_t peer;
};

struct tag_queue_node {
	struct list_node link;           /* in its list             */
	struct tag_queue_key key;
	bool is_in;                      /* false in a zeroed one   */
};

struct tag_queue {
	struct list *table;              /* NULL: few               */
	struct list few[TAG_QUEUE_FEW];
	uint32_t bits;                   /* the table has 2^bits lists */
	uint32_t count;
	uint64_t steps;                  /* nodes that were looked at, to be counted in tests */
};

/* A zeroed queue is empty. It does not own its entries. */
void comm_tag_queue_fini(struct tag_queue *queue);

/* Behind all others of its key. The entry is in no queue. */
void comm_tag_queue_put(struct tag_queue *queue, struct tag_queue_node *node, struct tag_queue_key key);
/* Nothing, if it is in none. */
void comm_tag_queue_take(struct tag_queue *queue, struct tag_queue_node *node);
/* The oldest of this key; NULL: there is none. */
struct tag_queue_node *comm_tag_queue_find(struct tag_queue *queue, struct tag_queue_key key);

#endif
