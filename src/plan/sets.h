/*
 * sets.h - sets of contributors, in place of data, for the checker. Private to src/plan.
 *
 * A set is made once, filled by its maker and then only read; it is named by its index.
 * All sets of a chunk are dropped together. A set of one costs no bits.
 */
#ifndef PLAN_SETS_H
#define PLAN_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct set {
	uint32_t lone;    /* its only member, or PLAN_NONE: see words */
	uint32_t count;
	uint64_t words;   /* index of its first word                  */
	uint64_t order;   /* digest of how the sum was added up        */
	bool updated;     /* the update of the sum has been done */
};

struct sets {
	uint32_t members;    /* how many there could be */
	uint32_t word_count; /* per set                 */
	struct set *list;
	uint32_t count;
	size_t capacity;
	uint64_t *words;
	size_t words_used, words_capacity;
	bool failed; /* out of memory: what was returned since means nothing */
};

void plan_sets_init(struct sets *sets, uint32_t members);
void plan_sets_fini(struct sets *sets);
void plan_sets_clear(struct sets *sets);

uint32_t plan_sets_make_lone(struct sets *sets, uint32_t member);
uint32_t plan_sets_make_empty(struct sets *sets);
/* The same members, updated. */
uint32_t plan_sets_make_updated(struct sets *sets, uint32_t of);

/* Adds all of `from` to `to`; a member that both have is returned, PLAN_NONE if there is none. */
uint32_t plan_sets_add(struct sets *sets, uint32_t to_index, uint32_t from_index);

bool plan_sets_has(const struct sets *sets, uint32_t index, uint32_t member);
/* Some member that the set lacks, PLAN_NONE if it is full. */
uint32_t plan_sets_lacks(const struct sets *sets, uint32_t index);

static inline uint32_t sets_count(const struct sets *sets, uint32_t set)
{
	return sets->list[set].count;
}

/* Equal digests: the same terms were added in the same order. A sum of two is the same either way round. */
static inline uint64_t sets_order(const struct sets *sets, uint32_t set)
{
	return sets->list[set].order;
}

static inline bool sets_updated(const struct sets *sets, uint32_t set)
{
	return sets->list[set].updated;
}

#endif
