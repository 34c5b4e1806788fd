/*
 * flood_filter_test.c - every rank forwards each message once, however many are under way, and again after it was
 * forgotten.
 */
#include "node/control/flood_filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static void name_word(uint8_t name[FLOOD_NAME_BYTES], uint64_t word)
{
	memset(name, 7, FLOOD_NAME_BYTES);
	memcpy(name + 20, &word, sizeof(word));
}

static bool hear(struct flood_filter *filter, uint64_t word, uint64_t now_ns)
{
	uint8_t name[FLOOD_NAME_BYTES];

	name_word(name, word);
	return control_flood_filter_hear(filter, name, now_ns);
}

/* All messages start at once, on an overlay of powers of two, and every step takes some time. */
static void passes_on_once(uint32_t words)
{
	enum { RANKS = 16, STEPS = 4 };
	struct { uint32_t to, word; } *queue = calloc((size_t)words * RANKS * STEPS + words, sizeof(*queue));
	struct flood_filter heard[RANKS] = {0};
	uint32_t first = 0, last = 0, passed = 0;

	CHECK(queue);
	for (uint32_t word = 0; word < words; word++) {
		queue[last].to = word % RANKS;
		queue[last++].word = word;
	}
	for (; first < last; first++) {
		/* With many messages an hour in all: far longer than they are kept. */
		if (!hear(&heard[queue[first].to], queue[first].word, NS_PER_S + first * (NS_PER_MS / 16)))
			continue;
		passed++;
		for (uint32_t step = 1; step < RANKS; step *= 2) {
			CHECK(last < words * RANKS * STEPS + words);
			queue[last].to = (queue[first].to + step) % RANKS;
			queue[last++].word = queue[first].word;
		}
	}
	CHECK_U64(passed, (uint64_t)words * RANKS);
	for (uint32_t i = 0; i < RANKS; i++)
		control_flood_filter_free(&heard[i]);
	free(queue);
}

int main(void)
{
	struct flood_filter filter = {0};
	uint64_t now = 1000 * NS_PER_S;

	/* A message is kept while it comes, for FLOOD_KEPT_NS at least, and not for ever. */
	CHECK(hear(&filter, 1, now));
	for (int i = 0; i < 10; i++) {
		now += FLOOD_KEPT_NS - 1;
		CHECK(!hear(&filter, 1, now));
	}
	now += 2 * FLOOD_KEPT_NS;
	CHECK(hear(&filter, 1, now));
	for (uint64_t word = 2; word < 20000; word++)
		CHECK(hear(&filter, word, now));
	for (uint64_t word = 1; word < 20000; word++)
		CHECK(!hear(&filter, word, now + FLOOD_KEPT_NS / 2));
	CHECK(hear(&filter, 20000, now + 3 * FLOOD_KEPT_NS));
	CHECK(filter.older.room == 0 && filter.recent.count == 1); /* and the memory is free */
	CHECK(hear(&filter, 1, now + 3 * FLOOD_KEPT_NS));
	control_flood_filter_free(&filter);

	passes_on_once(1);
	passes_on_once(64);
	passes_on_once(65);
	passes_on_once(2000);
	return 0;
}
