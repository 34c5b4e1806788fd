/*
 * parse_row.c - reads the row of a node: this is where nearly all bytes of a plan's text go.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/parse.h"

bool plan_parse_skip_rows(struct parser *parser, uint64_t end)
{
	while (parser->row_count < end) {
		if (!plan_parse_grow(parser, &parser->plan->row_at, parser->row_count + 1, &parser->row_capacity,
		                     sizeof(*parser->plan->row_at)))
			return false;
		parser->plan->row_at[parser->row_count++] = 0;
	}
	return true;
}

static bool push(struct parser *parser, uint32_t verb, uint8_t place, uint32_t argument)
{
	struct plan *plan = parser->plan;

	if (plan->step_count == parser->step_capacity &&
	    !plan_parse_grow(parser, &plan->steps, plan->step_count + 1, &parser->step_capacity, sizeof(*plan->steps)))
		return false;
	plan->steps[plan->step_count++] = (struct plan_step){.verb = (uint8_t)verb, .place = place, .node = argument};
	return true;
}

bool plan_parse_first_row(struct parser *parser)
{
	return push(parser, PLAN_ROW, 0, 0);
}

/* ---- equal rows are kept once: a butterfly of a thousand nodes has as many rows, whatever its chunks ---- */

static uint64_t row_hash(const struct plan *plan, uint64_t at)
{
	const struct plan_step *row = &plan->steps[at];
	uint64_t hash = row->count ^ plan_parse_turns_hash(plan, at);

	for (uint32_t i = 1; i <= row->count; i++) {
		uint64_t word;

		memcpy(&word, &row[i], sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

/* Where the row that begins at `at` stands among the known ones, or would stand. */
static uint64_t *known_slot(const struct parser *parser, uint64_t at)
{
	const struct plan_step *steps = parser->plan->steps, *row = &steps[at];
	uint64_t mask = parser->known_capacity - 1, slot = row_hash(parser->plan, at) & mask;

	for (; parser->known[slot]; slot = (slot + 1) & mask) {
		const struct plan_step *other = &steps[parser->known[slot]];

		if (other->count == row->count && memcmp(other, row, (row->count + UINT64_C(1)) * sizeof(*row)) == 0 &&
		    plan_parse_turns_same(parser->plan, parser->known[slot], at))
			break;
	}
	return &parser->known[slot];
}

static bool known_grow(struct parser *parser)
{
	uint64_t *old = parser->known, old_capacity = parser->known_capacity;
	uint64_t capacity = old_capacity ? old_capacity * 2 : 64;
	uint64_t *known = calloc(capacity, sizeof(*known));

	if (!known)
		return plan_scan_stop(&parser->scan, ESP_ENOMEM, "no memory for %llu rows", (unsigned long long)capacity);
	parser->known = known;
	parser->known_capacity = capacity;
	for (uint64_t i = 0; i < old_capacity; i++) {
		if (old[i])
			*known_slot(parser, old[i]) = old[i];
	}
	free(old);
	return true;
}

/* The row that begins at `at` is complete: *out is where it, or an equal one before it, stands. */
static bool keep_once(struct parser *parser, uint64_t at, uint64_t *out)
{
	if (parser->known_count * 2 >= parser->known_capacity && !known_grow(parser))
		return false;
	uint64_t *slot = known_slot(parser, at);
	if (*slot == 0) {
		*slot = at;
		parser->known_count++;
	} else {
		parser->plan->step_count = at; /* it is not needed a second time */
	}
	*out = *slot;
	return true;
}

/* ---- places and nodes ---- */

/* The number behind "tmp", or PLAN_TMP_MAX if it is none. */
static uint32_t tmp_number(const char *digits, size_t length)
{
	uint32_t number = 0;

	if (length < 1 || length > 2)
		return PLAN_TMP_MAX;
	for (size_t i = 0; i < length; i++) {
		if (!scan_is_digit(digits[i]))
			return PLAN_TMP_MAX;
		number = number * 10 + (uint32_t)(digits[i] - '0');
	}
	return number;
}

static bool take_place(struct parser *parser, uint8_t *out)
{
	static const char places[] = "a place (in, out, tmp0 to tmp31)";
	const char *word;
	size_t length;

	if (scan_is(&parser->scan, "in")) {
		*out = PLAN_IN;
		return true;
	}
	if (scan_is(&parser->scan, "out")) {
		*out = PLAN_OUT;
		return true;
	}
	if (!plan_scan_word(&parser->scan, places, &word, &length))
		return false;
	uint32_t tmp = length > 3 && memcmp(word, "tmp", 3) == 0 ? tmp_number(word + 3, length - 3) : PLAN_TMP_MAX;
	if (tmp >= PLAN_TMP_MAX) {
		parser->scan.at = word;
		return plan_scan_expected(&parser->scan, places);
	}
	*out = (uint8_t)(PLAN_TMP + tmp);
	return true;
}

static bool take_peer(struct parser *parser, uint32_t self, uint32_t *out)
{
	if (!plan_parse_node(parser, out))
		return false;
	return *out != self || plan_scan_fail(&parser->scan, "node %u sends to or receives from itself", self);
}

static bool at_digit(struct parser *parser)
{
	return scan_more(&parser->scan) && scan_is_digit(*parser->scan.at);
}

/* ---- steps; the verb has been taken ---- */

static bool take_send(struct parser *parser, uint32_t self)
{
	uint8_t place = 0;
	uint32_t to = 0;

	if (!take_place(parser, &place) || !plan_scan_need_sign(&parser->scan, '>'))
		return false;
	do {
		do {
			if (!take_peer(parser, self, &to) || !push(parser, PLAN_SEND, place, to) ||
			    !plan_parse_turns_sent(parser, to))
				return false;
		} while (at_digit(parser));
		if (!plan_parse_turn(parser))
			return false;
	} while (at_digit(parser));
	return true;
}

static bool take_receive(struct parser *parser, uint32_t self)
{
	uint8_t place = 0;
	uint32_t from = 0;

	return take_place(parser, &place) && plan_scan_need_sign(&parser->scan, '<') && take_peer(parser, self, &from) &&
	       push(parser, PLAN_RECV, place, from);
}

static bool take_term(struct parser *parser, uint32_t self)
{
	uint8_t place = 0;
	uint32_t from = 0;

	if (at_digit(parser))
		return take_peer(parser, self, &from) && push(parser, PLAN_TERM, 0, from);
	return take_place(parser, &place) && push(parser, PLAN_LOCAL, place, 0);
}

static bool take_fold(struct parser *parser, uint32_t self)
{
	uint64_t fold = parser->plan->step_count;
	uint8_t place = 0;

	if (!take_place(parser, &place) || !plan_scan_need_sign(&parser->scan, '<') || !push(parser, PLAN_FOLD, place, 0))
		return false;
	while (scan_more(&parser->scan) && *parser->scan.at != ';') {
		if (!take_term(parser, self))
			return false;
	}
	uint64_t count = parser->plan->step_count - fold - 1;
	if (count < 2)
		return plan_scan_fail(&parser->scan, "recv+ adds 2 terms or more, not %u (recv= and copy take one)",
		                      (unsigned)count);
	parser->plan->steps[fold].count = (uint32_t)count;
	return true;
}

static bool take_copy(struct parser *parser)
{
	uint8_t place = 0, source = 0;

	return take_place(parser, &place) && plan_scan_need_sign(&parser->scan, '<') && take_place(parser, &source) &&
	       push(parser, PLAN_COPY, place, source);
}

static bool take_update(struct parser *parser)
{
	uint8_t place = 0;

	return take_place(parser, &place) && push(parser, PLAN_UPDATE, place, 0);
}

/* The verbs, most frequent first. */
static bool take_step(struct parser *parser, uint32_t self)
{
	struct scan *scan = &parser->scan;

	if (scan_is(scan, "send"))
		return take_send(parser, self);
	if (scan_is(scan, "recv")) {
		if (scan_sign(scan, '='))
			return take_receive(parser, self);
		return scan_sign(scan, '+') ? take_fold(parser, self) : plan_scan_expected(scan, "'=' or '+' after recv");
	}
	if (scan_is(scan, "fetch"))
		return push(parser, PLAN_FETCH, PLAN_IN, 0);
	if (scan_is(scan, "deliver"))
		return push(parser, PLAN_DELIVER, PLAN_OUT, 0);
	if (scan_is(scan, "update"))
		return take_update(parser);
	if (scan_is(scan, "copy"))
		return take_copy(parser);
	return plan_scan_expected(scan, "fetch, send, recv=, recv+, copy, update or deliver");
}

/* ---- the row ---- */

static bool take_row_node(struct parser *parser, uint32_t *out)
{
	uint64_t first = (parser->piece_count - 1) * parser->plan->nodes;

	if (!plan_parse_node(parser, out) || !plan_scan_need_sign(&parser->scan, ':'))
		return false;
	if (first + *out >= parser->row_count)
		return true;
	return plan_scan_fail(&parser->scan,
	                      "node %u comes after node %llu: the rows of a chunk stand in ascending order, "
	                      "each node once",
	                      *out, (unsigned long long)(parser->row_count - first - 1));
}

bool plan_parse_row(struct parser *parser)
{
	uint64_t head = parser->plan->step_count, row;
	uint32_t node;

	if (parser->piece_count == 0)
		return plan_scan_fail(&parser->scan, "a row stands before the first chunk");
	if (!take_row_node(parser, &node))
		return false;
	row = (parser->piece_count - 1) * parser->plan->nodes + node;
	if (!plan_parse_skip_rows(parser, row + 1) || !push(parser, PLAN_ROW, 0, 0))
		return false;
	plan_parse_turns_begin(parser);
	do {
		if (!take_step(parser, node))
			return false;
	} while (scan_sign(&parser->scan, ';'));
	if (scan_more(&parser->scan))
		return plan_scan_expected(&parser->scan, "';' or the end of the line");
	uint64_t count = parser->plan->step_count - head - 1;
	if (count > UINT32_MAX / 4) /* a row is built in memory with 32-bit counts */
		return plan_scan_stop(&parser->scan, ESP_ELIMIT, "node %u has more than %u steps in one chunk", node,
		                      UINT32_MAX / 4);
	parser->plan->steps[head].count = (uint32_t)count;
	return plan_parse_turns_end(parser, node, head) && keep_once(parser, head, &parser->plan->row_at[row]);
}
