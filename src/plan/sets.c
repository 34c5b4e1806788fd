#include "plan/sets.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "plan/step.h"

void plan_sets_init(struct sets *sets, uint32_t members)
{
	*sets = (struct sets){.members = members, .word_count = (members + 63) / 64};
}

void plan_sets_fini(struct sets *sets)
{
	free(sets->list);
	free(sets->words);
	*sets = (struct sets){0};
}

void plan_sets_clear(struct sets *sets)
{
	sets->count = 0;
	sets->words_used = 0;
}

/* Out of memory: set 0 is returned, and failed says that it means nothing. */
static uint32_t push(struct sets *sets, struct set set)
{
	if (!vec_reserve(&sets->list, &sets->capacity, (size_t)sets->count + 1, sizeof(*sets->list))) {
		sets->failed = true;
		return 0;
	}
	sets->list[sets->count] = set;
	return sets->count++;
}

static bool reserve_words(struct sets *sets)
{
	size_t needed = sets->words_used + sets->word_count;

	if (vec_reserve(&sets->words, &sets->words_capacity, needed, sizeof(*sets->words)))
		return true;
	sets->failed = true;
	return false;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint32_t plan_sets_make_lone(struct sets *sets, uint32_t member)
{
	return push(sets, (struct set){.lone = member, .count = 1, .order = mix(member + UINT64_C(1))});
}

uint32_t plan_sets_make_empty(struct sets *sets)
{
	if (!reserve_words(sets))
		return 0;
	struct set set = {.lone = PLAN_NONE, .words = sets->words_used};
	memset(&sets->words[set.words], 0, sets->word_count * sizeof(uint64_t));
	sets->words_used += sets->word_count;
	return push(sets, set);
}

uint32_t plan_sets_make_updated(struct sets *sets, uint32_t of)
{
	struct set set = sets->list[of];

	set.updated = true;
	return push(sets, set);
}

static uint32_t add_lone(struct set *to, uint64_t *words, uint32_t member)
{
	uint64_t bit = UINT64_C(1) << member % 64;

	if (words[member / 64] & bit)
		return member;
	words[member / 64] |= bit;
	to->count++;
	return PLAN_NONE;
}

uint32_t plan_sets_add(struct sets *sets, uint32_t to_index, uint32_t from_index)
{
	if (sets->failed)
		return PLAN_NONE;
	struct set *to = &sets->list[to_index];
	const struct set *from = &sets->list[from_index];
	uint64_t *words = &sets->words[to->words];

	/* a + b is b + a, but (a + b) + c is not a + (b + c). */
	to->order = to->count ? mix(mix(to->order) + mix(from->order)) : from->order;

	if (from->lone != PLAN_NONE)
		return add_lone(to, words, from->lone);
	const uint64_t *more = &sets->words[from->words];
	for (uint32_t i = 0; i < sets->word_count; i++) {
		if (words[i] & more[i])
			return i * 64 + (uint32_t)__builtin_ctzll(words[i] & more[i]);
		words[i] |= more[i];
	}
	to->count += from->count;
	return PLAN_NONE;
}

bool plan_sets_has(const struct sets *sets, uint32_t index, uint32_t member)
{
	const struct set *set = &sets->list[index];

	if (member >= sets->members)
		return false;
	if (set->lone != PLAN_NONE)
		return set->lone == member;
	return sets->words[set->words + member / 64] >> member % 64 & 1;
}

uint32_t plan_sets_lacks(const struct sets *sets, uint32_t index)
{
	for (uint32_t member = 0; member < sets->members; member++) {
		if (!plan_sets_has(sets, index, member))
			return member;
	}
	return PLAN_NONE;
}
