/*
 * parse_turns.c - the turns of messages, as the text of a plan with laps has them ("send out > 1 2 @3").
 *
 * A receiver asks for the turn of what it is sent as a sender does, so they are kept by the node that a message goes
 * to, where both find them without a walk along the row (plan_turn()).
 */
#include <stdlib.h>
#include <string.h>

#include "plan/parse.h"

#define TURN_MAX ((1u << 30) - 1) /* a number follows a turn, too */

static bool has_laps(const struct parser *parser)
{
	return parser->plan->lap > 1;
}

/* Keeps one, beside steps[at]. */
static bool keep(struct parser *parser, uint64_t at, struct plan_sent sent)
{
	struct plan *plan = parser->plan;

	if (!plan_parse_grow(parser, &plan->turns, at + 1, &parser->turn_capacity, sizeof(*plan->turns)))
		return false;
	plan->turns[at] = sent;
	return true;
}

bool plan_parse_turns_init(struct parser *parser)
{
	return !has_laps(parser) || keep(parser, 0, (struct plan_sent){0}); /* the first row is the empty one */
}

void plan_parse_turns_begin(struct parser *parser)
{
	parser->sent_count = parser->turned = 0;
}

bool plan_parse_turns_sent(struct parser *parser, uint32_t to)
{
	if (!has_laps(parser))
		return true;
	if (!plan_parse_grow(parser, &parser->sent, parser->sent_count + 1, &parser->sent_capacity,
	                     sizeof(*parser->sent)))
		return false;
	parser->sent[parser->sent_count++] = (struct plan_sent){.to = to};
	return true;
}

bool plan_parse_turn(struct parser *parser)
{
	uint64_t turn;

	if (!scan_sign(&parser->scan, '@'))
		return !has_laps(parser) || plan_scan_expected(&parser->scan, "'@' and a turn: the plan has laps");
	if (!has_laps(parser))
		return plan_scan_fail(&parser->scan, "a message has a turn, but the head has no 'lap' of 2 chunks or more");
	if (!scan_number(&parser->scan, "a turn", &turn))
		return false;
	if (turn > TURN_MAX)
		return plan_scan_fail(&parser->scan, "turn %llu: turns are numbered from 0 to %u", (unsigned long long)turn,
		                      TURN_MAX);
	while (parser->turned < parser->sent_count)
		parser->sent[parser->turned++].turn = (uint32_t)turn;
	return true;
}

/* ---- a row that is complete ---- */

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* By node, and as they are sent. Most rows have few, or have them so. */
static bool sort_sent(struct parser *parser)
{
	bool sorted = true;

	if (!plan_parse_grow(parser, &parser->sent_order, parser->sent_count, &parser->order_capacity,
	                     sizeof(*parser->sent_order)))
		return false;
	for (uint64_t i = 0; i < parser->sent_count; i++) {
		parser->sent_order[i] = (uint64_t)parser->sent[i].to << 32 | i;
		sorted = sorted && (i == 0 || parser->sent_order[i - 1] < parser->sent_order[i]);
	}
	if (!sorted)
		qsort(parser->sent_order, parser->sent_count, sizeof(*parser->sent_order), by_number);
	return true;
}

bool plan_parse_turns_end(struct parser *parser, uint32_t node, uint64_t at)
{
	struct plan_sent before = {.to = PLAN_NONE};

	if (!has_laps(parser))
		return true;
	if (!sort_sent(parser) || !keep(parser, at, (struct plan_sent){.to = (uint32_t)parser->sent_count}))
		return false;
	for (uint64_t i = 0; i < parser->sent_count; i++) {
		struct plan_sent sent = parser->sent[(uint32_t)parser->sent_order[i]];

		if (sent.to == before.to && sent.turn < before.turn)
			return plan_scan_fail(&parser->scan, "node %u sends node %u a message of turn %u after one of turn %u",
			                      node, sent.to, sent.turn, before.turn);
		if (!keep(parser, at + 1 + i, sent))
			return false;
		before = sent;
	}
	return true;
}

bool plan_parse_turns_same(const struct plan *plan, uint64_t a, uint64_t b)
{
	if (!plan->turns)
		return true;
	/* Rows of the same steps send as many messages. */
	return memcmp(&plan->turns[a], &plan->turns[b], (plan->turns[a].to + UINT64_C(1)) * sizeof(*plan->turns)) == 0;
}

uint64_t plan_parse_turns_hash(const struct plan *plan, uint64_t at)
{
	uint64_t hash = 0;

	for (uint64_t i = 1; plan->turns && i <= plan->turns[at].to; i++) {
		hash = (hash ^ plan->turns[at + i].turn) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}
