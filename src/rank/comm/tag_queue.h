/*
 * tag_queue.h - things under keys, many under one key if need be, of which the oldest is found first.
 *
 * Putting, taking and finding take as long with ten thousand things as with ten, whatever the order. A thing
 * has its node inside; a pile allocates nothing but its table, and if there is no memory for a larger one it keeps
 * the small one and becomes slower. Pure, and without a lock of its own.
 */
#ifndef RANK_COMM_TAG_QUEUE_H
#define RANK_COMM_TAG_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#define PILE_FEW 8u /* lists of a pile without a table; a power of two */

struct pile_key {
	uint64_t tag;
	uint32_t peer;
};

struct pile_node {
	struct pile_node *next, *before; /* in its list             */
	struct pile_key key;
	bool is_in;                      /* false in a zeroed one   */
};

struct pile_list {
	struct pile_node *first, *last;
};

struct pile {
	struct pile_list *table;         /* NULL: few               */
	struct pile_list few[PILE_FEW];
	uint32_t bits;                   /* the table has 2^bits lists */
	uint32_t count;
	uint64_t steps;                  /* nodes that were looked at, to be counted in tests */
};

/* A zeroed pile is empty. What is in it is not its own. */
void pile_fini(struct pile *pile);

/* Behind all others of its key. It is in no pile. */
void pile_put(struct pile *pile, struct pile_node *node, struct pile_key key);
/* Nothing, if it is in none. */
void pile_take(struct pile *pile, struct pile_node *node);
/* The oldest of this key; NULL: there is none. */
struct pile_node *pile_find(struct pile *pile, struct pile_key key);

#endif
